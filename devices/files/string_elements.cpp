#include "devices/files/string_elements.h"

#include <algorithm>
#include <vector>

#include "devices/files/byte_reader.h"
#include "devices/files/crc32c.h"
#include "devices/string_writer.h"

namespace tagflow::checkpoint {
namespace {

uint32_t extend_by_length(uint32_t crc, uint64_t length) {
  std::string bytes;
  if (length <= UINT32_MAX) {
    append_number(bytes, uint32_t(length));
  } else {
    append_number(bytes, length);
  }
  return extend_crc32c(crc, bytes);
}

Status broken_strings(std::string_view what) {
  return error(Code::kDataLoss, "{}", what);
}

}  // namespace

Result<uint32_t> write_string_elements(
    const Tensor& tensor,
    const std::function<Status(std::string_view)>& append) {
  const auto strings = tensor.flat<std::string>();
  std::string head;
  uint32_t crc = 0;
  for (const std::string& text : strings) {
    append_varint(head, text.size());
    crc = extend_by_length(crc, text.size());
  }
  std::string checksum;
  append_number(checksum, mask_crc32c(crc));
  crc = extend_crc32c(crc, checksum);
  TAGFLOW_RETURN_IF_ERROR(append(head + checksum));
  for (const std::string& text : strings) {
    crc = extend_crc32c(crc, text);
    TAGFLOW_RETURN_IF_ERROR(append(text));
  }
  return crc;
}

Result<Tensor> parse_string_elements(std::string_view bytes, uint32_t wanted,
                                     const Shape& shape, Allocator& allocator) {
  const int64_t count = shape.num_elements();
  if (uint64_t(count) > bytes.size())
    return broken_strings(
        fmt::format("{} strings need more than {} bytes", count, bytes.size()));
  uint32_t crc = 0;
  std::string_view rest = bytes;
  for (int64_t i = 0; i < count; ++i) {
    const auto length = take_varint(rest);
    if (!length) return broken_strings("a length is cut off");
    crc = extend_by_length(crc, *length);
  }
  std::string_view lengths = bytes.substr(0, bytes.size() - rest.size());
  constexpr size_t kChecksum = sizeof(uint32_t);
  if (rest.size() < kChecksum)
    return broken_strings("the checksum of the lengths is cut off");
  if (load_number<uint32_t>(rest) != mask_crc32c(crc))
    return broken_strings("the checksum of the lengths is wrong");
  crc = extend_crc32c(crc, rest);
  if (mask_crc32c(crc) != wanted)
    return broken_strings("the checksum is wrong");
  rest.remove_prefix(kChecksum);

  TAGFLOW_ASSIGN(Tensor tensor,
                 Tensor::allocate(DataType::kString, shape, allocator));
  const devices::StringWriter writer(tensor);
  for (std::string& text : tensor.mutable_flat<std::string>()) {
    const uint64_t length = *take_varint(lengths);
    if (length > rest.size())
      return broken_strings("a string is longer than what is left");
    writer.assign(text, rest.substr(0, size_t(length)));
    rest.remove_prefix(size_t(length));
  }
  if (!rest.empty())
    return broken_strings(
        fmt::format("{} bytes follow after the last string", rest.size()));
  return tensor;
}

}  // namespace tagflow::checkpoint
