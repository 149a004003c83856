// Reads numbers from bytes, with bounds checks.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace tagflow::checkpoint {

// Nothing if the bytes end too early. Removes the bytes read from the front.
inline std::optional<uint64_t> take_varint(std::string_view& bytes) {
  constexpr int kMaxBits = 64;
  uint64_t value = 0;
  for (int shift = 0; shift < kMaxBits && !bytes.empty(); shift += 7) {
    const auto byte = uint8_t(bytes.front());
    bytes.remove_prefix(1);
    if (shift == kMaxBits - 1 && byte > 1) return std::nullopt;
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

inline void append_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += char(uint8_t(value) | 0x80);
  bytes += char(value);
}

// A little-endian number. REQUIRES: bytes.size() >= sizeof(T)
template <class T>
T load_number(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

template <class T>
void append_number(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace tagflow::checkpoint
