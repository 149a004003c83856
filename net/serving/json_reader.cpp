#include "net/serving/json_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tagflow::net::serving {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The end of the number that begins there; the beginning if none does.
const char* end_of_number(const char* const begin, const char* const end) {
  const char* p = begin;
  const auto digits = [&] {
    const char* const first = p;
    while (p != end && is_digit(*p)) ++p;
    return p != first;
  };
  if (p != end && *p == '-') ++p;
  if (p != end && *p == '0') {
    ++p;
  } else if (!digits()) {
    return begin;
  }
  if (p != end && *p == '.') {
    ++p;
    if (!digits()) return begin;
  }
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p != end && (*p == '+' || *p == '-')) ++p;
    if (!digits()) return begin;
  }
  // "01" and "1x" are none.
  const bool goes_on = p != end && (is_digit(*p) || *p == '.' ||
                                    (*p | 0x20) == 'e' || *p == '-');
  return goes_on ? begin : p;
}

}  // namespace

Status JsonReader::error_here(std::string_view what) const {
  return invalid_argument("[json] {} at byte {}", what, at_);
}

Status JsonReader::error_at(std::string_view number,
                            std::string_view what) const {
  return invalid_argument("[json] {} {} at byte {}", number, what,
                          number.data() - text_.data());
}

void JsonReader::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++at_;
  }
}

bool JsonReader::take(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

JsonReader::Kind JsonReader::kind() {
  skip_space();
  if (at_ == text_.size()) return Kind::kOther;
  switch (text_[at_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    case 'N':
    case 'I':
    case '-':
      return Kind::kNumber;
    default:
      return is_digit(text_[at_]) ? Kind::kNumber : Kind::kOther;
  }
}

Status JsonReader::enter(char bracket, std::string_view what) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != bracket)
    return error_here(fmt::format("there is no {}", what));
  if (first_.size() >= size_t(kMostDepth))
    return error_here(
        fmt::format("there are more than {} values in each other", kMostDepth));
  ++at_;
  first_.push_back(true);
  return {};
}

Result<bool> JsonReader::next(char bracket) {
  skip_space();
  const bool is_first = first_.back();
  first_.back() = false;
  if (at_ < text_.size() && text_[at_] == bracket) {
    ++at_;
    first_.pop_back();
    return false;
  }
  if (is_first) return true;
  if (at_ == text_.size() || text_[at_] != ',')
    return error_here(
        fmt::format("there is neither \",\" nor \"{}\"", bracket));
  ++at_;
  return true;
}

Status JsonReader::begin_object() { return enter('{', "object"); }

Result<bool> JsonReader::next_key(std::string& key) {
  TAGFLOW_ASSIGN(const bool is_one, next('}'));
  if (!is_one) return false;
  TAGFLOW_ASSIGN(key, string());
  skip_space();
  if (!take(":")) return error_here("there is no \":\"");
  return true;
}

Status JsonReader::begin_array() { return enter('[', "array"); }

Result<bool> JsonReader::next_element() { return next(']'); }

Result<std::string> JsonReader::string() {
  skip_space();
  if (!take("\"")) return error_here("there is no string");
  const size_t begin = at_;
  bool is_plain = true;
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_];
    if (c == '\\') ++at_;  // what follows is no end
    if (c == '\\' || c < ' ') is_plain = false;
    ++at_;
  }
  if (at_ >= text_.size()) {
    at_ = text_.size();
    return error_here("a string has no end");
  }
  const std::string_view inner = text_.substr(begin, at_ - begin);
  ++at_;
  if (is_plain) return std::string(inner);
  const std::string_view whole = text_.substr(begin - 1, inner.size() + 2);
  auto parsed = nlohmann::json::parse(whole, nullptr, false);
  if (!parsed.is_string()) {
    at_ = begin - 1;
    return error_here("a string is no UTF-8, or has a wrong escape");
  }
  return std::move(parsed.get_ref<std::string&>());
}

Result<std::string_view> JsonReader::number() {
  skip_space();
  const size_t begin = at_;
  if (take("NaN") || take("Infinity") || take("-Infinity"))
    return text_.substr(begin, at_ - begin);
  const char* const first = text_.data() + at_;
  const char* const last = end_of_number(first, text_.data() + text_.size());
  if (last == first) return error_here("there is no number");
  at_ += size_t(last - first);
  return text_.substr(begin, at_ - begin);
}

Result<bool> JsonReader::boolean() {
  skip_space();
  if (take("true")) return true;
  if (take("false")) return false;
  return error_here("there is neither true nor false");
}

// Nested as deep as enter() allows.
Status JsonReader::skip() {
  switch (kind()) {
    case Kind::kObject: {
      TAGFLOW_RETURN_IF_ERROR(begin_object());
      std::string key;
      while (true) {
        TAGFLOW_ASSIGN(const bool is_one, next_key(key));
        if (!is_one) return {};
        TAGFLOW_RETURN_IF_ERROR(skip());
      }
    }
    case Kind::kArray:
      TAGFLOW_RETURN_IF_ERROR(begin_array());
      while (true) {
        TAGFLOW_ASSIGN(const bool is_one, next_element());
        if (!is_one) return {};
        TAGFLOW_RETURN_IF_ERROR(skip());
      }
    case Kind::kString:
      return string().status();
    case Kind::kNumber:
      return number().status();
    case Kind::kBool:
      return boolean().status();
    case Kind::kNull:
      return take("null") ? Status() : error_here("there is no value");
    case Kind::kOther:
      break;
  }
  return error_here("there is no value");
}

Status JsonReader::end() {
  skip_space();
  if (at_ == text_.size() && first_.empty()) return {};
  return error_here("there is something behind the value");
}

}  // namespace tagflow::net::serving
