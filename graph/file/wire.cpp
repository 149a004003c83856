#include "graph/file/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <span>

#include "graph/budget.h"

namespace tagflow::graph {
namespace {

namespace pb = google::protobuf;

constexpr int kMaxNesting = 100;
constexpr uint32_t kLengthDelimited = 2;

// Checks the first bytes: binary messages begin with a tag and a length.
bool looks_like_text(std::string_view bytes) {
  constexpr size_t kLooked = 64;
  return std::ranges::all_of(bytes.substr(0, kLooked), [](unsigned char c) {
    return (c >= ' ' && c < 0x7f) || c == '\t' || c == '\n' || c == '\r';
  });
}

Status not_a(std::string_view what, std::string_view bytes,
             const std::string& why = "") {
  return error(Code::kDataLoss, "[graphdef] {} bytes are not a {}: {}",
               bytes.size(), what,
               !why.empty() ? why
               : looks_like_text(bytes)
                   ? "they look like text, which is read from .pbtxt files"
                   : "they are cut off, damaged, or of another kind");
}

// As much of a name as messages show.
std::string_view shown(std::string_view name) { return name.substr(0, 100); }

bool is_utf8(std::string_view text) {
  return pb::internal::IsStructurallyValidUTF8(text.data(), int(text.size()));
}

std::string not_utf8(const pb::FieldDescriptor& field, std::string_view text) {
  return fmt::format("{} is not UTF-8: {:?}", field.full_name(), shown(text));
}

Status check_size(size_t size, std::string_view what, const Limits& limits) {
  // Protobuf counts bytes in an int.
  const size_t limit = std::min<size_t>(limits.max_bytes, INT_MAX);
  if (size <= limit) return {};
  return error(Code::kResourceExhausted,
               "[graphdef] the {} has {} bytes, the limit is {}", what, size,
               limit);
}

// Skips the value of a field; false if it is malformed. Groups, which none of
// these formats uses, count as malformed.
bool skip_value(pb::io::CodedInputStream& in, uint32_t wire_type) {
  uint64_t number = 0;
  uint32_t word = 0;
  switch (wire_type) {
    case 0:
      return in.ReadVarint64(&number);
    case 1:
      return in.ReadLittleEndian64(&number);
    case kLengthDelimited:
      return in.ReadVarint32(&word) && word <= INT_MAX && in.Skip(int(word));
    case 5:
      return in.ReadLittleEndian32(&word);
    default:
      return false;
  }
}

// The field numbers of a NodeDef, and of an entry of its map of attributes.
constexpr uint32_t kNodeName = 1, kNodeAttr = 5, kEntryKey = 1;

// Calls visit(field number, bytes) for each field; false if the message is
// malformed.
template <class Visit>
bool for_each_field(std::string_view message, const Visit& visit) {
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                              int(message.size()));
  while (const uint32_t tag = in.ReadTag()) {
    if ((tag & 7) != kLengthDelimited) {
      if (!skip_value(in, tag & 7)) return false;
      continue;
    }
    uint32_t length = 0;
    if (!in.ReadVarint32(&length)) return false;
    const auto at = size_t(in.CurrentPosition());
    if (length > message.size() - at) return false;
    if (!visit(tag >> 3, message.substr(at, length))) return false;
    in.Skip(int(length));
  }
  return in.ConsumedEntireMessage();
}

// "FIELD is not UTF-8: ...", for the first such string of a message that the
// parser refused; empty if there is none.
std::string bad_string(std::string_view message, const pb::Descriptor& type,
                       int depth = 0) {
  std::string found;
  if (depth == kMaxNesting) return found;
  for_each_field(message, [&](uint32_t number, std::string_view bytes) {
    const pb::FieldDescriptor* field = type.FindFieldByNumber(int(number));
    if (field == nullptr) return true;
    if (field->type() == pb::FieldDescriptor::TYPE_STRING) {
      if (!is_utf8(bytes)) found = not_utf8(*field, bytes);
    } else if (field->type() == pb::FieldDescriptor::TYPE_MESSAGE) {
      found = bad_string(bytes, *field->message_type(), depth + 1);
    }
    return found.empty();
  });
  return found;
}

std::string_view string_field(std::string_view message, uint32_t number) {
  std::string_view value;
  for_each_field(message, [&](uint32_t field, std::string_view bytes) {
    if (field == number) value = bytes;
    return true;
  });
  return value;
}

Status attr_twice(std::string_view node, std::string_view attr) {
  return invalid_argument("[graphdef] node {:?}: {:?} is given twice",
                          shown(node), shown(attr));
}

// Counts nodes, and finds the first duplicate attribute of a node. The parser
// silently keeps the last one.
class NodeScan {
 public:
  size_t nodes = 0;
  Status twice;

  void add(std::string_view node) {
    ++nodes;
    keys_.clear();
    for_each_field(node, [&](uint32_t field, std::string_view bytes) {
      if (field == kNodeAttr) keys_.push_back(string_field(bytes, kEntryKey));
      return true;
    });
    std::ranges::sort(keys_);
    const auto same = std::ranges::adjacent_find(keys_);
    if (same != keys_.end() && twice.ok())
      twice = attr_twice(string_field(node, kNodeName), *same);
  }

 private:
  std::vector<std::string_view> keys_;
};

// Calls visit(bytes) for each message at the end of `path`.
template <class Visit>
bool scan_messages(std::string_view bytes, std::span<const int> path,
                   const Visit& visit) {
  return for_each_field(bytes, [&](uint32_t field, std::string_view inner) {
    if (int(field) != path[0]) return true;
    if (path.size() > 1) return scan_messages(inner, path.subspan(1), visit);
    visit(inner);
    return true;
  });
}

// The nesting depth of braces outside of strings and comments.
int nesting(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '<' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == '>' || c == ']') --depth;
    if (c == '#') i = std::min(text.find('\n', i), text.size());
    if (c != '"' && c != '\'') continue;
    for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i)
      if (text[i] == '\\') ++i;
  }
  return deepest;
}

// Bytes that end early if the budget does.
class BudgetedInput final : public pb::io::ZeroCopyInputStream {
 public:
  BudgetedInput(std::string_view bytes, Budget* budget)
      : in_(bytes.data(), int(bytes.size()), kBlock), budget_(budget) {
    begin_stage(budget, "the file was read");
  }

  bool Next(const void** data, int* size) override {
    if (status_.ok() && budget_ != nullptr) status_ = budget_->look();
    return status_.ok() && in_.Next(data, size);
  }
  void BackUp(int count) override { in_.BackUp(count); }
  bool Skip(int count) override { return in_.Skip(count); }
  int64_t ByteCount() const override { return in_.ByteCount(); }

  const Status& status() const { return status_; }

 private:
  static constexpr int kBlock = 1 << 20;

  pb::io::ArrayInputStream in_;
  Budget* const budget_;
  Status status_;
};

// Keeps the first error. Unknown fields are warnings of the parser; those that
// newer versions write and that have no effect here are ignored.
class Collector : public pb::io::ErrorCollector {
 public:
  explicit Collector(UnknownFields unknown) : unknown_(unknown) {}

  void AddError(int line, pb::io::ColumnNumber column,
                const std::string& message) override {
    if (!first_.empty()) return;
    first_ =
        fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int line, pb::io::ColumnNumber column,
                  const std::string& message) override {
    if (unknown_ == UnknownFields::kIgnored) return;
    for (std::string_view ignored :
         {"\"experimental_type\"", "\"experimental_full_type\"",
          "\"debug_info\"", "\"handle_data\"", "\"any_info\"",
          "\"stripped_op_list\""})
      if (message.find(ignored) != message.npos) return;
    AddError(line, column, message);
  }
  const std::string& first() const { return first_; }

 private:
  const UnknownFields unknown_;
  std::string first_;
};

// What a text can express, but no binary message: an entry of a map twice, and
// strings that are not UTF-8.
class TextCheck {
 public:
  explicit TextCheck(Budget* budget) : budget_(budget) {}

  // Until it is used as a map, a map field has all entries of the text; then
  // the last entry of a key wins. REQUIRES: just parsed. `node` is the name of
  // the enclosing node.
  Status check(const pb::Message& message, const std::string& node) {
    TAGFLOW_RETURN_IF_ERROR(check_budget(budget_));
    const pb::Reflection& reflection = *message.GetReflection();
    std::vector<const pb::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    std::string name = node;
    for (const pb::FieldDescriptor* field : fields)
      if (field->name() == "name" && !field->is_repeated())
        name = reflection.GetString(message, field);
    for (const pb::FieldDescriptor* field : fields) {
      if (field->type() == pb::FieldDescriptor::TYPE_STRING)
        TAGFLOW_RETURN_IF_ERROR(check_strings(message, *field, name));
      if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (field->is_repeated()) {
        TAGFLOW_RETURN_IF_ERROR(check_repeated(message, *field, name));
      } else {
        TAGFLOW_RETURN_IF_ERROR(
            check(reflection.GetMessage(message, field), name));
      }
    }
    return {};
  }

 private:
  Status check_repeated(const pb::Message& message,
                        const pb::FieldDescriptor& field,
                        const std::string& node) {
    const pb::Reflection& reflection = *message.GetReflection();
    std::vector<std::string> keys;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const pb::Message& inner =
          reflection.GetRepeatedMessage(message, &field, i);
      const pb::FieldDescriptor* key =
          field.is_map() ? inner.GetDescriptor()->map_key() : nullptr;
      if (key != nullptr && key->type() == pb::FieldDescriptor::TYPE_STRING)
        keys.push_back(inner.GetReflection()->GetString(inner, key));
      TAGFLOW_RETURN_IF_ERROR(check(inner, node));
    }
    std::ranges::sort(keys);
    const auto same = std::ranges::adjacent_find(keys);
    return same == keys.end() ? Status() : attr_twice(node, *same);
  }

  static Status check_strings(const pb::Message& message,
                              const pb::FieldDescriptor& field,
                              const std::string& node) {
    const pb::Reflection& reflection = *message.GetReflection();
    std::string room;
    const auto check_one = [&](const std::string& text) -> Status {
      if (is_utf8(text)) return {};
      return invalid_argument(
          "[graphdef] {}{}",
          node.empty() ? "" : fmt::format("node {:?}: ", shown(node)),
          not_utf8(field, text));
    };
    if (!field.is_repeated())
      return check_one(reflection.GetStringReference(message, &field, &room));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i)
      TAGFLOW_RETURN_IF_ERROR(check_one(
          reflection.GetRepeatedStringReference(message, &field, i, &room)));
    return {};
  }

  Budget* const budget_;
};

}  // namespace

Status check_message(std::string_view bytes,
                     std::initializer_list<std::vector<int>> paths,
                     std::string_view what, const Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(check_size(bytes.size(), what, limits));
  NodeScan scan;
  for (const std::vector<int>& path : paths)
    if (!scan_messages(bytes, path,
                       [&](std::string_view node) { scan.add(node); }))
      return not_a(what, bytes);
  if (scan.nodes > limits.max_nodes)
    return error(Code::kResourceExhausted,
                 "[graphdef] the {} has {} nodes, the limit is {}", what,
                 scan.nodes, limits.max_nodes);
  return std::move(scan.twice);
}

Status check_count(std::string_view bytes,
                   std::initializer_list<std::vector<int>> paths,
                   std::string_view what, size_t limit) {
  size_t count = 0;
  for (const std::vector<int>& path : paths)
    scan_messages(bytes, path, [&](std::string_view) { ++count; });
  if (count <= limit) return {};
  return error(Code::kResourceExhausted,
               "[graphdef] there are {} {}, the limit is {}", count, what,
               limit);
}

Status parse_message(std::string_view bytes, std::string_view what,
                     pb::Message* message, const Limits& limits) {
  BudgetedInput input(bytes, limits.budget);
  pb::io::CodedInputStream in(&input);
  in.SetRecursionLimit(kMaxNesting);
  // Errors are returned in the Status, not printed. (This silences the whole
  // process meanwhile.)
  const pb::LogSilencer quiet;
  const bool parsed =
      message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  TAGFLOW_RETURN_IF_ERROR(input.status());
  return parsed
             ? Status()
             : not_a(what, bytes, bad_string(bytes, *message->GetDescriptor()));
}

Status parse_text(std::string_view text, std::string_view what,
                  const Limits& limits, pb::Message* message,
                  UnknownFields unknown) {
  TAGFLOW_RETURN_IF_ERROR(check_size(text.size(), what, limits));
  if (nesting(text) > kMaxNesting)
    return error(Code::kResourceExhausted,
                 "[graphdef] the {} nests deeper than {}", what, kMaxNesting);
  Collector collector(unknown);
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMaxNesting);
  BudgetedInput in(text, limits.budget);
  const bool parsed = parser.Parse(&in, message);
  TAGFLOW_RETURN_IF_ERROR(in.status());
  if (parsed && collector.first().empty())
    return TextCheck(limits.budget).check(*message, "");
  return invalid_argument(
      "[graphdef] the text is not a {}: {}{}", what, collector.first(),
      looks_like_text(text) ? "" : " (binary graphs are read from .pb files)");
}

Result<std::string> write_message(const pb::Message& message) {
  const size_t size = message.ByteSizeLong();
  if (size > size_t(std::numeric_limits<int>::max()))
    return error(Code::kResourceExhausted,
                 "[graphdef] the graph needs {} bytes; the format ends at 2 "
                 "GiB",
                 size);
  std::string bytes;
  bytes.reserve(size);
  // About strings that are not UTF-8, which readers refuse.
  const pb::LogSilencer quiet;
  {
    pb::io::StringOutputStream stream(&bytes);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string print_text(const pb::Message& message) {
  std::string text;
  pb::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace tagflow::graph
