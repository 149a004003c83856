#include "net/wire/tensor.h"

#include <algorithm>
#include <bit>

#include "devices/string_writer.h"

namespace tagflow::net {
namespace {

size_t varint_bytes(uint64_t value) {
  constexpr size_t kBits = 7;
  return value == 0 ? 1 : (size_t(std::bit_width(value)) + kBits - 1) / kBits;
}

bool is_sendable(DataType dtype) {
  return is_known(dtype) && !is_ref(dtype) && dtype != DataType::kInvalid &&
         dtype != DataType::kResource && dtype != DataType::kVariant;
}

Shape read_shape(Reader& reader) {
  const auto rank = reader.fixed<uint8_t>();
  Shape::Dims dims;
  for (int i = 0; i < rank && reader.ok(); ++i)
    dims.push_back(int64_t(reader.varint_to(INT64_MAX, "a dimension")));
  Result<Shape> shape = Shape::make({dims.data(), dims.size()});
  if (shape.ok()) return std::move(*shape);
  reader.fail(shape.status().message());
  return {};
}

// Reads strings into a tensor that has as many.
void read_strings(Reader& reader, std::string_view bytes, Tensor& tensor) {
  Reader strings(bytes, "strings");
  for (std::string& text : tensor.mutable_flat<std::string>())
    text.assign(strings.text());
  if (Status status = strings.finish(); !status.ok())
    return reader.fail(std::move(status));
  if (Status status = devices::settle_strings(tensor); !status.ok())
    reader.fail(std::move(status));
}

}  // namespace

Status check_sendable(DataType dtype, std::string_view name) {
  if (is_sendable(dtype)) return {};
  return error(Code::kUnimplemented,
               "[net|tensor] {} cannot leave its process: its dtype is {}",
               name, is_known(dtype) ? dtype_name(dtype) : "unknown");
}

TensorInfo info_of(const Tensor& tensor) {
  TensorInfo info{tensor.dtype(), tensor.shape(), 0};
  if (is_plain(info.dtype)) {
    info.bytes = tensor.bytes();
  } else {
    for (const std::string& text : tensor.flat<std::string>())
      info.bytes += varint_bytes(text.size()) + text.size();
  }
  return info;
}

void write_info(Writer& writer, const TensorInfo& info) {
  if (Status status = check_sendable(info.dtype, "a tensor"); !status.ok())
    return writer.fail(std::move(status));
  writer.fixed(uint8_t(info.dtype));
  writer.fixed(uint8_t(info.shape.rank()));
  for (int64_t dim : info.shape.dims()) writer.varint(uint64_t(dim));
  writer.varint(info.bytes);
}

TensorInfo read_info(Reader& reader) {
  TensorInfo info;
  info.dtype = DataType(reader.fixed<uint8_t>());
  if (reader.ok() && !is_sendable(info.dtype))
    reader.fail(fmt::format("{} is not the number of a dtype that is sent",
                            int(uint8_t(info.dtype))));
  info.shape = read_shape(reader);
  info.bytes = reader.varint();
  if (!reader.ok()) return {};
  const auto count = uint64_t(info.shape.num_elements());
  // A string has at least the byte of its length.
  const bool fits =
      is_plain(info.dtype)
          ? checked_multiply(int64_t(count), int64_t(dtype_size(info.dtype))) ==
                int64_t(info.bytes)
          : count <= info.bytes && (count > 0 || info.bytes == 0);
  if (fits) return info;
  reader.fail(fmt::format("{}{} does not have {} bytes", dtype_name(info.dtype),
                          info.shape.to_string(), info.bytes));
  return {};
}

void write_elements(Writer& writer, const Tensor& tensor) {
  if (Status status = check_sendable(tensor.dtype(), "a tensor"); !status.ok())
    return writer.fail(std::move(status));
  if (is_plain(tensor.dtype()))
    return writer.raw({static_cast<const char*>(tensor.raw()), tensor.bytes()});
  for (const std::string& text : tensor.flat<std::string>()) writer.text(text);
}

Tensor read_elements(Reader& reader, const TensorInfo& info,
                     Allocator& allocator) {
  const std::string_view bytes = reader.raw(info.bytes);
  if (!is_plain(info.dtype))
    reader.charge(uint64_t(info.shape.num_elements()), sizeof(std::string));
  if (!reader.ok()) return {};
  Result<Tensor> tensor = Tensor::allocate(info.dtype, info.shape, allocator);
  if (!tensor.ok()) {
    reader.fail(tensor.status());
    return {};
  }
  if (is_plain(info.dtype)) {
    std::copy(bytes.begin(), bytes.end(),
              static_cast<char*>(tensor->mutable_raw()));
    if (Status status = check_elements(*tensor); !status.ok())
      reader.fail(std::move(status));
  } else {
    read_strings(reader, bytes, *tensor);
  }
  return reader.ok() ? std::move(*tensor) : Tensor();
}

Status check_elements(const Tensor& tensor) {
  if (tensor.dtype() != DataType::kBool) return {};
  // As bytes: a bool of another value is undefined.
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
  const auto* end = bytes + tensor.bytes();
  const auto* wrong =
      std::find_if(bytes, end, [](uint8_t byte) { return byte > 1; });
  if (wrong == end) return {};
  return error(Code::kDataLoss,
               "[net|tensor] element {} of a {} is {}, neither 0 nor 1",
               wrong - bytes, tensor.describe(), *wrong);
}

void write_tensor(Writer& writer, const Tensor& tensor) {
  if (Status status = check_sendable(tensor.dtype(), "a tensor"); !status.ok())
    return writer.fail(std::move(status));
  write_info(writer, info_of(tensor));
  write_elements(writer, tensor);
}

Tensor read_tensor(Reader& reader, Allocator& allocator) {
  const TensorInfo info = read_info(reader);
  return reader.ok() ? read_elements(reader, info, allocator) : Tensor();
}

}  // namespace tagflow::net
