#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "graph/base64.h"
#include "graph/float16.h"
#include "net/serving/json_tensor.h"

namespace tagflow::net::serving {
namespace {

constexpr char kBinaryKey[] = "b64";

template <class T>
constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> ||
    std::is_same_v<T, BFloat16>;

template <class T>
Status read_integer(JsonReader& json, T& value) {
  TAGFLOW_ASSIGN(const std::string_view text, json.number());
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && stop == end) return {};
  if (std::is_unsigned_v<T> && text == "-0") {
    value = 0;
    return {};
  }
  return json.error_at(text,
                       fmt::format("is no {}", dtype_name(kDataTypeOf<T>)));
}

Status too_large(const JsonReader& json, std::string_view text,
                 DataType dtype) {
  return json.error_at(text,
                       fmt::format("is too large for {}", dtype_name(dtype)));
}

template <class F>
Status floating_of_text(const JsonReader& json, std::string_view text,
                        F& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc()) return {};
  if (code == std::errc::result_out_of_range) {
    // Too small, or too large?
    if (std::abs(std::strtod(std::string(text).c_str(), nullptr)) >= 1)
      return too_large(json, text, kDataTypeOf<F>);
    value = text.front() == '-' ? F(-0.0) : F(0);
    return {};
  }
  const F infinity = std::numeric_limits<F>::infinity();
  value = text == "NaN"         ? std::numeric_limits<F>::quiet_NaN()
          : text.front() == '-' ? -infinity
                                : infinity;
  return {};
}

template <class F>
Status read_floating(JsonReader& json, F& value) {
  TAGFLOW_ASSIGN(const std::string_view text, json.number());
  return floating_of_text(json, text, value);
}

// Of 16 bits.
template <class T>
Status read_short(JsonReader& json, T& value) {
  TAGFLOW_ASSIGN(const std::string_view text, json.number());
  float wide = 0;
  if (!floating_of_text(json, text, wide).ok())
    return too_large(json, text, kDataTypeOf<T>);
  value = T(wide);
  return std::isfinite(wide) && !std::isfinite(float(value))
             ? too_large(json, text, kDataTypeOf<T>)
             : Status();
}

template <class T>
Status read_value(JsonReader& json, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    TAGFLOW_ASSIGN(value, json.boolean());
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto kind = json.kind();
    TAGFLOW_ASSIGN(value, kind == JsonReader::Kind::kObject
                              ? read_binary_string(json)
                              : json.string());
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return read_floating(json, value);
  } else if constexpr (kIsFloating<T>) {
    return read_short(json, value);
  } else {
    return read_integer(json, value);
  }
  return {};
}

// Elements in memory: a vector of bool has none.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, char, T>;

template <class T>
class TypedReader final : public JsonTensorReader {
 public:
  Result<Tensor> take() override {
    if (is_in_rows_) {
      TAGFLOW_RETURN_IF_ERROR(set_length(0, num_rows_));
    }
    std::vector<int64_t> dims(lengths_.begin(), lengths_.end());
    TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
    TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(kDataTypeOf<T>, shape));
    std::move(values_.begin(), values_.end(), tensor.mutable_data<T>());
    return tensor;
  }

 protected:
  Status read_at(JsonReader& json, int depth) override {
    is_in_rows_ = is_in_rows_ || depth > 0;
    return read_nested(json, depth);
  }

 private:
  Status read_nested(JsonReader& json, int depth) {
    if (json.kind() != JsonReader::Kind::kArray) return read_leaf(json, depth);
    if (rank_ >= 0 && depth >= rank_) return uneven(json);
    if (depth >= int(lengths_.size())) lengths_.resize(size_t(depth) + 1, -1);
    TAGFLOW_RETURN_IF_ERROR(json.begin_array());
    int64_t count = 0;
    while (true) {
      TAGFLOW_ASSIGN(const bool is_one, json.next_element());
      if (!is_one) break;
      ++count;
      TAGFLOW_RETURN_IF_ERROR(read_nested(json, depth + 1));
    }
    if (set_length(depth, count).ok()) return {};
    return uneven(json);
  }

  Status read_leaf(JsonReader& json, int depth) {
    if (rank_ < 0) rank_ = std::max<int>(depth, 0);
    if (depth != rank_ || int(lengths_.size()) > rank_) return uneven(json);
    Element<T> value{};
    if constexpr (std::is_same_v<T, bool>) {
      bool is_true = false;
      TAGFLOW_RETURN_IF_ERROR(read_value(json, is_true));
      value = char(is_true);
    } else {
      TAGFLOW_RETURN_IF_ERROR(read_value(json, value));
    }
    values_.push_back(std::move(value));
    return {};
  }

  Status set_length(int depth, int64_t count) {
    if (depth >= int(lengths_.size())) lengths_.resize(size_t(depth) + 1, -1);
    int64_t& length = lengths_[size_t(depth)];
    if (length < 0) length = count;
    if (length == count) return {};
    return invalid_argument("[json] lists differ in their lengths");
  }

  static Status uneven(const JsonReader& json) {
    return json.error_here(
        "the lists of a tensor differ in their lengths, or in how they are "
        "nested,");
  }

  std::vector<Element<T>> values_;
  std::vector<int64_t> lengths_;  // of lists, by depth; -1: not known yet
  int rank_ = -1;                 // the depth of values; -1: not known yet
  bool is_in_rows_ = false;
};

template <class T>
Result<std::unique_ptr<JsonTensorReader>> typed() {
  return std::unique_ptr<JsonTensorReader>(std::make_unique<TypedReader<T>>());
}

}  // namespace

Status floating_of(const JsonReader& json, std::string_view text,
                   float& value) {
  return floating_of_text(json, text, value);
}

Result<std::unique_ptr<JsonTensorReader>> JsonTensorReader::make(
    DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return typed<float>();
    case DataType::kDouble:
      return typed<double>();
    case DataType::kHalf:
      return typed<Half>();
    case DataType::kBFloat16:
      return typed<BFloat16>();
    case DataType::kInt8:
      return typed<int8_t>();
    case DataType::kInt16:
      return typed<int16_t>();
    case DataType::kInt32:
      return typed<int32_t>();
    case DataType::kInt64:
      return typed<int64_t>();
    case DataType::kUInt8:
      return typed<uint8_t>();
    case DataType::kUInt16:
      return typed<uint16_t>();
    case DataType::kUInt32:
      return typed<uint32_t>();
    case DataType::kUInt64:
      return typed<uint64_t>();
    case DataType::kBool:
      return typed<bool>();
    case DataType::kString:
      return typed<std::string>();
    default:
      return error(Code::kUnimplemented, "[json] there are no values of {}",
                   dtype_name(dtype));
  }
}

Status JsonTensorReader::read_row(JsonReader& json) {
  ++num_rows_;
  return read_at(json, 1);
}

bool is_binary_string(JsonReader json) {
  std::string key;
  if (!json.begin_object().ok()) return false;
  const auto first = json.next_key(key);
  return first.ok() && *first && key == kBinaryKey;
}

Result<std::string> read_binary_string(JsonReader& json) {
  TAGFLOW_RETURN_IF_ERROR(json.begin_object());
  std::string key;
  TAGFLOW_ASSIGN(const bool is_one, json.next_key(key));
  if (!is_one || key != kBinaryKey)
    return json.error_here("there is no string, nor an object {\"b64\": ...}");
  TAGFLOW_ASSIGN(const std::string text, json.string());
  TAGFLOW_ASSIGN(const bool is_more, json.next_key(key));
  if (is_more)
    return json.error_here("an object {\"b64\": ...} has another key");
  auto bytes = decode_base64(text);
  if (!bytes.ok()) return json.error_here(bytes.status().message());
  return bytes;
}

}  // namespace tagflow::net::serving
