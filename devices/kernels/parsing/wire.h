// The wire format of protobuf, read in place: messages of which only few fields
// are wanted, and whose strings are copied once, to where they are needed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tagflow::devices {

// The values of a field, by the way in which they are written.
enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5,
};

// Reads a number of 1 to 10 bytes, and moves `at` behind it. False if there is
// none before `end`.
inline bool read_varint(const char*& at, const char* end, uint64_t& value) {
  if (at != end && !(*at & 0x80)) [[likely]] {
    value = uint8_t(*at++);
    return true;
  }
  value = 0;
  for (int shift = 0; shift < 70 && at != end; shift += 7) {
    const uint8_t byte = uint8_t(*at++);
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return false;
}

// The fields of a message, one after the other.
//
//   for (WireReader reader(message); reader.next();) ...
//   if (!reader.ok()) ...   // damaged
//
// Thread-compatible. What it returns refers to the message.
class WireReader {
 public:
  explicit WireReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // Goes to the first or next field. False at the end, and where the message is
  // damaged. Groups, which were given up before these messages existed, count
  // as damage.
  bool next() {
    if (at_ == end_) return false;
    begin_ = at_;
    uint64_t tag;
    if (!read_varint(at_, end_, tag) || tag >> 35 != 0) return fail();
    number_ = uint32_t(tag >> 3);
    type_ = WireType(tag & 7);
    if (number_ == 0) return fail();
    switch (type_) {
      case WireType::kVarint:
        return read_varint(at_, end_, varint_) || fail();
      case WireType::kFixed64:
        return take(8) || fail();
      case WireType::kFixed32:
        return take(4) || fail();
      case WireType::kBytes: {
        uint64_t size;
        if (!read_varint(at_, end_, size)) return fail();
        return take(size) || fail();
      }
    }
    return fail();
  }
  bool ok() const { return ok_; }

  uint32_t number() const { return number_; }
  WireType type() const { return type_; }
  bool is_bytes(uint32_t number) const {
    return number_ == number && type_ == WireType::kBytes;
  }
  uint64_t varint() const { return varint_; }
  // Of a field of kBytes its value, of kFixed64 and kFixed32 its 8 or 4 bytes.
  std::string_view bytes() const { return bytes_; }
  // The message from the beginning of this field to its end.
  std::string_view rest() const { return {begin_, size_t(end_ - begin_)}; }

 private:
  bool take(uint64_t size) {
    if (size > uint64_t(end_ - at_)) return false;
    bytes_ = {at_, size_t(size)};
    at_ += size;
    return true;
  }
  bool fail() {
    ok_ = false;
    at_ = end_;
    return false;
  }

  const char* at_;
  const char* const end_;
  const char* begin_ = nullptr;
  std::string_view bytes_;
  uint64_t varint_ = 0;
  uint32_t number_ = 0;
  WireType type_ = WireType::kVarint;
  bool ok_ = true;
};

}  // namespace tagflow::devices
