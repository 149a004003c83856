// Keys of slices: texts and numbers are encoded so that the bytes sort in the
// same order.
#include <bit>

#include "devices/files/tensor_slice.h"

namespace tagflow::checkpoint {
namespace {

// The two bytes that could be taken for the end are escaped by another.
void append_ordered_text(std::string& key, std::string_view text) {
  for (const char c : text) {
    key += c;
    if (c == '\0') key += '\xff';
    if (c == '\xff') key += '\0';
  }
  key += '\0';
  key += '\1';
}

// The number of bytes, then the bytes, the highest first.
void append_ordered_count(std::string& key, uint64_t value) {
  const int bytes = (std::bit_width(value) + 7) / 8;
  key += char(bytes);
  for (int i = bytes; i-- > 0;) key += char(uint8_t(value >> (8 * i)));
}

// In an encoding of n bytes the first n bits are ones, followed by a zero; a
// negative number has all of them flipped. Then follows the number in two's
// complement. So a byte holds six bits and the sign, and ten bytes are enough.
void append_ordered_number(std::string& key, int64_t value) {
  constexpr int kMaxBytes = 10;
  const uint64_t magnitude = uint64_t(value < 0 ? ~value : value);
  const int bytes = std::bit_width(magnitude) / 7 + 1;
  // The number in kMaxBytes bytes, the highest first.
  const auto byte_at = [&](int from_end) -> uint8_t {
    const int shift = 8 * from_end;
    return uint8_t(shift < 64 ? uint64_t(value) >> shift
                              : (value < 0 ? ~uint64_t{0} : 0));
  };
  // `bytes` ones at the top of 16 bits.
  const auto mark = uint16_t(~(0xffffu >> bytes));
  for (int i = 0; i < bytes && i < kMaxBytes; ++i) {
    uint8_t byte = byte_at(bytes - 1 - i);
    if (i == 0) byte ^= uint8_t(mark >> 8);
    if (i == 1) byte ^= uint8_t(mark);
    key += char(byte);
  }
}

}  // namespace

std::string slice_key(std::string_view name, const TensorSlice& slice) {
  std::string key;
  append_ordered_count(key, 0);
  append_ordered_text(key, name);
  append_ordered_count(key, uint64_t(slice.rank()));
  for (const Extent& extent : slice.extents()) {
    append_ordered_number(key, extent.start);
    append_ordered_number(key, extent.length);
  }
  return key;
}

}  // namespace tagflow::checkpoint
