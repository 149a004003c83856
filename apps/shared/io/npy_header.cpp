#include "apps/shared/io/npy_header.h"

#include <charconv>
#include <utility>

#include "graph/shape.h"

namespace tagflow::io {
namespace {

struct TypeCode {
  std::string_view code;  // numpy's kind and size
  DataType dtype;
};

// numpy has no bfloat16: arrays of type "V2" are read as bfloat16.
constexpr TypeCode kTypeCodes[] = {
    {"b1", DataType::kBool},      {"i1", DataType::kInt8},
    {"i2", DataType::kInt16},     {"i4", DataType::kInt32},
    {"i8", DataType::kInt64},     {"u1", DataType::kUInt8},
    {"u2", DataType::kUInt16},    {"u4", DataType::kUInt32},
    {"u8", DataType::kUInt64},    {"f2", DataType::kHalf},
    {"f4", DataType::kFloat},     {"f8", DataType::kDouble},
    {"c8", DataType::kComplex64}, {"c16", DataType::kComplex128},
    {"V2", DataType::kBFloat16},
};

// A cursor over the dict literal. Its errors name what was expected.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<NpyHeader> parse() {
    TAGFLOW_RETURN_IF_ERROR(expect('{'));
    while (peek() != '}') {
      TAGFLOW_ASSIGN(std::string_view key, quoted());
      TAGFLOW_RETURN_IF_ERROR(expect(':'));
      TAGFLOW_RETURN_IF_ERROR(value_of(key));
      if (peek() != '}') TAGFLOW_RETURN_IF_ERROR(expect(','));
    }
    TAGFLOW_RETURN_IF_ERROR(expect('}'));
    skip_spaces();
    if (at_ != text_.size()) return fail("nothing more");
    for (std::string_view key : {"descr", "fortran_order", "shape"}) {
      if (!seen(key)) {
        return invalid_argument("[npy] the header has no '{}'", key);
      }
    }
    return std::move(header_);
  }

 private:
  // Of a key that is there twice, the last value counts.
  Status value_of(std::string_view key) {
    if (!seen(key)) keys_.push_back(key);
    if (key == "descr") return descr();
    if (key == "fortran_order") return fortran_order();
    if (key == "shape") return shape();
    return invalid_argument("[npy] the header has an unknown key '{}'", key);
  }

  Status descr() {
    if (peek() != '\'' && peek() != '"') {
      return invalid_argument(
          "[npy] arrays of structures are not supported ('descr' at byte {} "
          "of the header is not a string)",
          at_);
    }
    TAGFLOW_ASSIGN(std::string_view text, quoted());
    // Every other byte order than '>', and none, is the machine's, which is
    // little-endian.
    constexpr std::string_view kOrders = "<>=|";
    const bool has_order =
        !text.empty() && kOrders.find(text[0]) != kOrders.npos;
    const std::string_view code = text.substr(has_order ? 1 : 0);
    for (const TypeCode& type : kTypeCodes) {
      if (type.code != code) continue;
      header_.dtype = type.dtype;
      header_.swap_bytes = text[0] == '>' && dtype_size(type.dtype) > 1;
      return {};
    }
    const bool is_text = code.starts_with('U') || code.starts_with('S');
    return invalid_argument(
        "[npy] no tensor has elements of type '{}'{}", text,
        is_text       ? "; strings are read from a .json file, as "
                        "json.dump(array.tolist(), file) writes it"
        : code == "O" ? "; give the array a type, as array.astype('float32')"
                      : "");
  }

  Status fortran_order() {
    skip_spaces();
    for (bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        header_.fortran_order = value;
        return {};
      }
    }
    return fail("True or False");
  }

  // (), (3,), (3, 4) and (3, 4,).
  Status shape() {
    TAGFLOW_RETURN_IF_ERROR(expect('('));
    header_.dims.clear();
    bool comma = true;
    while (peek() != ')') {
      if (!comma) return fail("','");
      TAGFLOW_ASSIGN(int64_t dim, number());
      if (header_.dims.size() == size_t(kMaxRank)) {
        return invalid_argument("[npy] the shape has more than {} dimensions",
                                kMaxRank);
      }
      header_.dims.push_back(dim);
      comma = peek() == ',';
      if (comma) ++at_;
    }
    if (header_.dims.size() == 1 && !comma) return fail("','");
    return expect(')');
  }

  Result<int64_t> number() {
    skip_spaces();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    const auto [stop, code] = std::from_chars(begin, end, value);
    if (code == std::errc::result_out_of_range) {
      return invalid_argument("[npy] a dimension does not fit in 64 bits");
    }
    if (code != std::errc() || value < 0) return fail("a dimension");
    at_ += size_t(stop - begin);
    return value;
  }

  Result<std::string_view> quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return fail("a quoted string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return fail("a closing quote");
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  bool seen(std::string_view key) const {
    for (std::string_view other : keys_) {
      if (other == key) return true;
    }
    return false;
  }

  void skip_spaces() {
    constexpr std::string_view kSpaces = " \t\n\r\f";
    while (at_ < text_.size() && kSpaces.find(text_[at_]) != kSpaces.npos)
      ++at_;
  }

  // The next character after spaces; 0 at the end.
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Status expect(char c) {
    if (peek() != c) return fail(std::string{'\'', c, '\''});
    ++at_;
    return {};
  }

  Status fail(std::string_view expected) const {
    return invalid_argument("[npy] expected {} at byte {} of the header",
                            expected, at_);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<std::string_view> keys_;
  NpyHeader header_;
};

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text) {
  return HeaderParser(text).parse();
}

Result<std::string> format_npy_header(const NpyHeader& header) {
  for (const TypeCode& type : kTypeCodes) {
    if (type.dtype != header.dtype) continue;
    std::string shape;
    for (int64_t dim : header.dims) shape += fmt::format("{}, ", dim);
    // "(3, )" is "(3,)" and "(3, 4, )" is "(3, 4)", as Python writes tuples.
    if (!shape.empty()) shape.resize(shape.size() - 1);
    if (header.dims.size() > 1) shape.resize(shape.size() - 1);
    return fmt::format(
        "{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
        dtype_size(type.dtype) == 1 ? '|' : '<', type.code, shape);
  }
  return invalid_argument("[npy] the format has no elements of type {}",
                          dtype_name(header.dtype));
}

}  // namespace tagflow::io
