#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "graph/base64.h"
#include "graph/float16.h"
#include "graph/utf8.h"
#include "net/serving/json_tensor.h"

namespace tagflow::net::serving {
namespace {

// The longest text of a number.
using NumberText = std::array<char, 32>;

// The shortest text that reads as the same number; whole numbers have a
// fraction, too, so that readers see that they are not integers.
template <class F>
void write_floating(F value, std::string& text) {
  if (std::isnan(value)) {
    text += "NaN";
  } else if (std::isinf(value)) {
    text += value > 0 ? "Infinity" : "-Infinity";
  } else {
    NumberText buffer;
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    const std::string_view written(buffer.data(), size_t(end - buffer.data()));
    text += written;
    if (written.find_first_of(".e") == written.npos) text += ".0";
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

template <class T>
void write_element(const T& value, bool is_binary, std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!is_binary) return write_json_string(value, text);
    text += "{\"b64\": \"";
    text += encode_base64(value);
    text += "\"}";
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    write_floating(value, text);
  } else if constexpr (std::is_integral_v<T>) {
    NumberText buffer;
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    text.append(buffer.data(), end);
  } else {
    write_floating(float(value), text);
  }
}

template <class T>
void write_lists(const T*& next, std::span<const int64_t> dims, bool is_binary,
                 std::string& text) {
  if (dims.empty()) return write_element(*next++, is_binary, text);
  text += '[';
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) text += ", ";
    write_lists(next, dims.subspan(1), is_binary, text);
  }
  text += ']';
}

// The part of the tensor from `begin` on that has those dimensions.
Status write_part(const Tensor& tensor, int64_t begin,
                  std::span<const int64_t> dims, bool is_binary,
                  std::string& text) {
  const auto write = [&]<class T>(const T* data) {
    const T* next = data + begin;
    write_lists(next, dims, is_binary, text);
    return Status();
  };
  switch (tensor.dtype()) {
    case DataType::kFloat:
      return write(tensor.data<float>());
    case DataType::kDouble:
      return write(tensor.data<double>());
    case DataType::kHalf:
      return write(tensor.data<Half>());
    case DataType::kBFloat16:
      return write(tensor.data<BFloat16>());
    case DataType::kInt8:
      return write(tensor.data<int8_t>());
    case DataType::kInt16:
      return write(tensor.data<int16_t>());
    case DataType::kInt32:
      return write(tensor.data<int32_t>());
    case DataType::kInt64:
      return write(tensor.data<int64_t>());
    case DataType::kUInt8:
      return write(tensor.data<uint8_t>());
    case DataType::kUInt16:
      return write(tensor.data<uint16_t>());
    case DataType::kUInt32:
      return write(tensor.data<uint32_t>());
    case DataType::kUInt64:
      return write(tensor.data<uint64_t>());
    case DataType::kBool:
      return write(tensor.data<bool>());
    case DataType::kString: {
      const auto all = tensor.flat<std::string>();
      int64_t count = 1;
      for (const int64_t dim : dims) count *= dim;
      const auto part = all.subspan(size_t(begin), size_t(count));
      for (const std::string& value : part)
        is_binary = is_binary || !is_utf8(value);
      return write(tensor.data<std::string>());
    }
    default:
      return error(Code::kUnimplemented, "[json] there are no values of {}",
                   dtype_name(tensor.dtype()));
  }
}

}  // namespace

void write_json_string(std::string_view value, std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  text += '"';
  while (!value.empty()) {
    const size_t length = character_length(value);
    const char c = value[0];
    if (length == 0) {
      text += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (c == '\n') {
      text += "\\n";
    } else if (length == 1 && (c < ' ' || c == '\x7f')) {
      text += "\\u00";
      text += {kHex[c >> 4], kHex[c & 15]};
    } else {
      text += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  text += '"';
}

void write_json_number(double value, std::string& text) {
  write_floating(value, text);
}

void write_json_number(float value, std::string& text) {
  write_floating(value, text);
}

Status write_json_tensor(const Tensor& tensor, bool is_binary,
                         std::string& text) {
  const Shape shape = tensor.shape();
  return write_part(tensor, 0, shape.dims(), is_binary, text);
}

Status write_json_row(const Tensor& tensor, int64_t row, bool is_binary,
                      std::string& text) {
  const Shape shape = tensor.shape();
  const int64_t size = tensor.num_elements() / shape.dim(0);
  return write_part(tensor, row * size, shape.dims().subspan(1), is_binary,
                    text);
}

}  // namespace tagflow::net::serving
