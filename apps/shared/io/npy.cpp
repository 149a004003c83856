#include "apps/shared/io/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "apps/shared/io/npy_header.h"
#include "graph/dtype_visit.h"
#include "graph/status_text.h"
#include "graph/storage_type.h"

namespace tagflow::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are copied as they lie in the file");

constexpr std::string_view kMagic = "\x93NUMPY";
// Longer headers than this are malicious.
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;
// numpy aligns the elements so that they can be mapped.
constexpr size_t kAlignment = 64;

// Splits off the header text; `bytes` becomes what follows it.
Result<std::string_view> take_header(std::string_view& bytes) {
  if (!bytes.starts_with(kMagic)) {
    return invalid_argument(
        "[npy] this is not an .npy file: it has no magic bytes");
  }
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < 2)
    return error(Code::kDataLoss, "[npy] the file is cut short");
  const int major = uint8_t(bytes[0]), minor = uint8_t(bytes[1]);
  bytes.remove_prefix(2);
  if (major < 1 || major > 3 || minor != 0) {
    return invalid_argument("[npy] version {}.{} is not supported", major,
                            minor);
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < length_bytes) {
    return error(Code::kDataLoss,
                 "[npy] the file is cut short before the header");
  }
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | uint8_t(bytes[i]);
  }
  bytes.remove_prefix(length_bytes);
  if (length > kMaxHeaderBytes) {
    return invalid_argument("[npy] the header has {} bytes: the limit is {}",
                            length, kMaxHeaderBytes);
  }
  if (length > bytes.size()) {
    return error(Code::kDataLoss,
                 "[npy] the header should have {} bytes, but only {} are left",
                 length, bytes.size());
  }
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

void swap_bytes(DataType dtype, char* data, size_t bytes) {
  // A complex number is two numbers.
  const size_t size = dtype_size(dtype) / (is_complex(dtype) ? 2 : 1);
  for (size_t at = 0; at < bytes; at += size) {
    std::reverse(data + at, data + at + size);
  }
}

// Copies elements whose first dimension is the fastest into row-major order.
void copy_transposed(const Shape& shape, size_t size, const char* from,
                     char* to) {
  const int rank = shape.rank();
  std::vector<int64_t> index(size_t(rank), 0);
  std::vector<int64_t> stride(size_t(rank), 1);
  for (int d = 1; d < rank; ++d) {
    stride[size_t(d)] = stride[size_t(d - 1)] * shape.dim(d - 1);
  }
  int64_t source = 0;
  for (int64_t i = shape.num_elements(); i > 0; --i, to += size) {
    std::memcpy(to, from + size_t(source) * size, size);
    // Increments `index` like an odometer, the last dimension first.
    for (int d = rank - 1; d >= 0; --d) {
      source += stride[size_t(d)];
      if (++index[size_t(d)] < shape.dim(d)) break;
      source -= stride[size_t(d)] * shape.dim(d);
      index[size_t(d)] = 0;
    }
  }
}

}  // namespace

Result<Tensor> parse_npy(std::string_view bytes) {
  TAGFLOW_ASSIGN(std::string_view text, take_header(bytes));
  TAGFLOW_ASSIGN(NpyHeader header, parse_npy_header(text));
  TAGFLOW_ASSIGN(Shape shape, Shape::make(header.dims));

  const size_t size = dtype_size(header.dtype);
  const auto wanted = checked_multiply(shape.num_elements(), int64_t(size));
  if (!wanted || uint64_t(*wanted) > bytes.size()) {
    return error(
        Code::kDataLoss,
        "[npy] {}{} needs {} elements of {} bytes, but only {} bytes are "
        "left",
        dtype_name(header.dtype), shape.to_string(), shape.num_elements(), size,
        bytes.size());
  }
  bytes = bytes.substr(0, size_t(*wanted));

  TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(header.dtype, shape));
  if (bytes.empty()) return tensor;
  char* data = static_cast<char*>(tensor.mutable_raw());
  if (header.fortran_order && shape.rank() > 1) {
    copy_transposed(shape, size, bytes.data(), data);
  } else {
    std::memcpy(data, bytes.data(), bytes.size());
  }
  if (header.swap_bytes) swap_bytes(header.dtype, data, bytes.size());
  if (header.dtype == DataType::kBool) {
    // Any other byte in a C++ bool is undefined behaviour.
    for (size_t i = 0; i < bytes.size(); ++i) data[i] = data[i] != 0;
  }
  return tensor;
}

Result<std::string> format_npy(const Tensor& tensor) {
  NpyHeader header;
  header.dtype = storage_type(tensor.dtype());
  const Shape shape = tensor.shape();
  header.dims.assign(shape.dims().begin(), shape.dims().end());
  TAGFLOW_ASSIGN(std::string text, format_npy_header(header));

  const size_t fixed = kMagic.size() + 2 + 2;
  const size_t unpadded = fixed + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';

  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', char(text.size() & 0xff), char(text.size() >> 8)};
  bytes += text;
  bytes.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
  return bytes;
}

Result<Tensor> read_npy(const std::filesystem::path& path, Pipes pipes) {
  TAGFLOW_ASSIGN(std::string bytes, read_file(path, kMaxFileBytes, pipes));
  Result<Tensor> tensor = parse_npy(bytes);
  if (tensor.ok()) return tensor;
  return std::move(tensor).status().with_prefix(
      fmt::format("\"{}\": ", path.string()));
}

Status write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const Result<std::string> bytes = format_npy(tensor);
  if (!bytes.ok()) return name_file(bytes.status(), path.string());
  return write_file(path, *bytes);
}

}  // namespace tagflow::io
