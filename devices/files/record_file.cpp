#include "devices/files/record_file.h"

#include <cstring>

#include "devices/files/crc32c.h"

namespace tagflow::checkpoint {

namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kChecksumBytes = sizeof(uint32_t);
constexpr size_t kHeaderBytes = kLengthBytes + kChecksumBytes;

// The machine is little-endian, too.
template <class T>
T number_at(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <class T>
void append_little_endian(std::string& to, T number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  to.append(bytes, sizeof number);
}

bool fits(std::string_view bytes, uint32_t checksum) {
  return mask_crc32c(crc32c(bytes)) == checksum;
}

Status damaged(const InputStream& stream, std::string_view what) {
  return error(Code::kDataLoss, "the record at byte {} {}", stream.position(),
               what);
}

}  // namespace

Result<bool> read_record(InputStream& stream, std::string_view& data) {
  TAGFLOW_ASSIGN(std::string_view bytes, stream.peek(kHeaderBytes));
  if (bytes.empty()) return false;
  if (bytes.size() < kHeaderBytes) return damaged(stream, "ends too early");
  if (!fits(bytes.substr(0, kLengthBytes),
            number_at<uint32_t>(bytes, kLengthBytes)))
    return damaged(stream, "has a damaged length");
  const auto length = number_at<uint64_t>(bytes, 0);
  constexpr size_t kAround = kHeaderBytes + kChecksumBytes;
  if (length > SIZE_MAX - kAround) return damaged(stream, "ends too early");
  auto peeked = stream.peek(size_t(length) + kAround);
  if (peeked.status().code() == Code::kResourceExhausted)
    return std::move(peeked).status().with_prefix(
        fmt::format("the record at byte {}: ", stream.position()));
  TAGFLOW_ASSIGN(bytes, std::move(peeked));
  if (bytes.size() - kAround < length || bytes.size() < kAround)
    return damaged(stream, "ends too early");
  data = bytes.substr(kHeaderBytes, size_t(length));
  if (!fits(data, number_at<uint32_t>(bytes, kHeaderBytes + data.size())))
    return damaged(stream, "is damaged");
  stream.skip(size_t(length) + kAround);
  return true;
}

void append_record(std::string& to, std::string_view data) {
  std::string length;
  append_little_endian(length, uint64_t(data.size()));
  to += length;
  append_little_endian(to, mask_crc32c(crc32c(length)));
  to += data;
  append_little_endian(to, mask_crc32c(crc32c(data)));
}

}  // namespace tagflow::checkpoint
