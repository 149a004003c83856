// Literals: from JSON to a tensor of a given type.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "apps/shared/io/json_tensor.h"
#include "graph/base64.h"
#include "graph/dtype_visit.h"

namespace tagflow::io {
namespace {

using Json = nlohmann::json;

// For messages: the value, shortened. Lists and objects may be deep.
std::string quote(const Json& value) {
  constexpr size_t kShown = 40;
  const bool is_flat = value.size() <= kShown &&
                       std::ranges::all_of(value, [](const Json& item) {
                         return item.is_primitive();
                       });
  if (!is_flat && value.is_array())
    return fmt::format("a list of {}", value.size());
  if (!is_flat) return "an object";
  // Invalid UTF-8 must not throw here, and characters must not be split.
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown - 3) + "...";
  return text;
}

Status mismatch(const Json& value, DataType dtype, std::string_view hint = "") {
  return invalid_argument("[literal] {} is not a value of type {}{}",
                          quote(value), dtype_name(dtype), hint);
}

Result<double> to_double(const Json& value, DataType dtype) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
  }
  return mismatch(value, dtype);
}

template <class T>
Status convert_floating(const Json& value, T& out) {
  TAGFLOW_ASSIGN(double number, to_double(value, kDataTypeOf<T>));
  if constexpr (std::is_same_v<T, double>) {
    out = number;
  } else {
    // The cast would be undefined behaviour for numbers beyond float.
    const double limit = double(std::numeric_limits<float>::max());
    const bool fits = !std::isfinite(number) || std::abs(number) <= limit;
    if (fits) out = T(float(number));
    if (!fits || (std::isfinite(number) && std::isinf(float(out)))) {
      return mismatch(value, kDataTypeOf<T>, ": it is too large");
    }
  }
  return {};
}

template <class T>
Status convert_integer(const Json& value, T& out) {
  constexpr DataType kType = kDataTypeOf<T>;
  // nlohmann reads nonnegative numbers as unsigned.
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > uint64_t(std::numeric_limits<T>::max())) {
      return mismatch(value, kType, ": it is out of range");
    }
    out = T(number);
    return {};
  }
  if (!value.is_number_integer()) return mismatch(value, kType);
  const auto number = value.get<int64_t>();
  if (number < 0 && (std::is_unsigned_v<T> ||
                     number < int64_t(std::numeric_limits<T>::min()))) {
    return mismatch(value, kType, ": it is out of range");
  }
  out = T(number);
  return {};
}

template <class T>
Status convert_complex(const Json& value, T& out) {
  using Part = typename T::value_type;
  Part re = 0, im = 0;
  if (value.is_object() && value.size() == 2 && value.contains("re") &&
      value.contains("im")) {
    TAGFLOW_RETURN_IF_ERROR(convert_floating(value["re"], re));
    TAGFLOW_RETURN_IF_ERROR(convert_floating(value["im"], im));
  } else if (value.is_number()) {
    TAGFLOW_RETURN_IF_ERROR(convert_floating(value, re));
  } else {
    return mismatch(value, kDataTypeOf<T>,
                    ": a complex number is written {\"re\": 1, \"im\": 2}");
  }
  out = T(re, im);
  return {};
}

Status convert_string(const Json& value, std::string& out) {
  if (value.is_object() && value.size() == 1 && value.contains("base64") &&
      value["base64"].is_string()) {
    TAGFLOW_ASSIGN(
        out, decode_base64(value["base64"].get_ref<const std::string&>()));
    return {};
  }
  if (!value.is_string()) return mismatch(value, DataType::kString);
  out = value.get<std::string>();
  return {};
}

template <class T>
Status convert(const Json& value, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return mismatch(value, DataType::kBool);
    out = value.get<bool>();
    return {};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return convert_string(value, out);
  } else if constexpr (std::is_integral_v<T>) {
    return convert_integer(value, out);
  } else if constexpr (requires { typename T::value_type; }) {
    return convert_complex(value, out);
  } else {
    return convert_floating(value, out);
  }
}

// The lengths of the lists along their first elements.
Result<Shape> shape_of(const Json& root) {
  std::vector<int64_t> dims;
  for (const Json* list = &root; list->is_array(); list = &(*list)[0]) {
    if (dims.size() == size_t(kMaxRank)) {
      return invalid_argument("[literal] lists are nested deeper than {}",
                              kMaxRank);
    }
    dims.push_back(int64_t(list->size()));
    if (list->empty()) break;
  }
  return Shape::make(dims);
}

// Writes the leaves below `value` to `out`, and advances it. Recursion is
// bounded by the shape's rank.
template <class T>
Status fill(const Json& value, const Shape& shape, int depth, T*& out) {
  if (depth == shape.rank()) {
    if (value.is_array()) {
      return invalid_argument("[literal] the lists are not all of depth {}",
                              shape.rank());
    }
    return convert(value, *out++);
  }
  if (!value.is_array() || int64_t(value.size()) != shape.dim(depth)) {
    return invalid_argument(
        "[literal] {} must be a list of length {}, as the first list of its "
        "depth is",
        quote(value), shape.dim(depth));
  }
  for (const Json& item : value) {
    TAGFLOW_RETURN_IF_ERROR(fill(item, shape, depth + 1, out));
  }
  return {};
}

bool has_bare_word(std::string_view text,
                   std::initializer_list<std::string_view> words) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == b;
  };
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  // Whether the text from `at` on begins with one of them, as a whole word.
  const auto starts = [&](std::string_view at) {
    return std::ranges::any_of(words, [&](std::string_view word) {
      return at.size() >= word.size() &&
             std::equal(word.begin(), word.end(), at.begin(),
                        [&](char w, char a) { return same(a, w); }) &&
             (at.size() == word.size() || !is_letter(at[word.size()]));
    });
  };
  for (size_t i = 0; i < text.size(); ++i)
    if ((i == 0 || !is_letter(text[i - 1])) && starts(text.substr(i)))
      return true;
  return false;
}

// Whether a number outside strings, alone or in lists, exceeds all doubles.
bool has_huge_number(std::string_view text) {
  constexpr std::string_view kBetween = "[], \t\r\n";
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = std::min(text.find('"', at + 1), text.size() - 1) + 1;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    double number = 0;
    const auto [rest, error] =
        std::from_chars(text.data() + at, text.data() + end, number);
    if (error == std::errc::result_out_of_range && rest == text.data() + end)
      return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string_view hint_for_no_json(std::string_view text) {
  if (has_huge_number(text))
    return "; no number is larger than 1.8e308: write \"inf\", in double "
           "quotes";
  if (text.find('"') != text.npos) return "";
  if (has_bare_word(text, {"nan", "inf", "infinity"}))
    return "; JSON cannot express them: write \"nan\", \"inf\" and \"-inf\", "
           "in double quotes";
  if (has_bare_word(text, {"true", "false"}))
    return "; truth values are written true and false";
  const bool is_word = std::ranges::any_of(
      text, [](unsigned char c) { return std::isalpha(c) != 0; });
  return is_word ? "; a string is written in double quotes, within single ones "
                   "for the shell: '\"text\"'"
                 : "";
}

Result<Tensor> parse_json_literal(std::string_view text, DataType dtype) {
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) {
    return invalid_argument("[literal] \"{}\" is not JSON{}",
                            text.substr(0, 80), hint_for_no_json(text));
  }
  TAGFLOW_ASSIGN(Shape shape, shape_of(root));
  // fill() stops at the first missing leaf, so check the total before
  // allocating: each element takes at least a byte of the text.
  if (shape.num_elements() > int64_t(text.size())) {
    return invalid_argument(
        "[literal] the lists are ragged: their shape has {} elements, but the "
        "text has only {} characters",
        shape.num_elements(), text.size());
  }
  Status status = invalid_argument("[literal] no literal can be of type {}",
                                   dtype_name(dtype));
  Tensor tensor;
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    Result<Tensor> allocated = Tensor::allocate(dtype, shape);
    if (!allocated.ok()) {
      status = std::move(allocated).status();
      return;
    }
    tensor = std::move(allocated).value();
    T* out = tensor.mutable_data<T>();
    status = fill(root, shape, 0, out);
  });
  TAGFLOW_RETURN_IF_ERROR(std::move(status));
  return tensor;
}

}  // namespace tagflow::io
