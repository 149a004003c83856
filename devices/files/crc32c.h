// CRC-32C, the checksum of checkpoint files.
#pragma once

#include <cstdint>
#include <string_view>

namespace tagflow::checkpoint {

// Extends `crc`, the checksum of earlier bytes, by `bytes`; the checksum of no
// bytes is 0. Uses the CPU's instruction if there is one: faster than memory.
// Thread-safe.
uint32_t extend_crc32c(uint32_t crc, std::string_view bytes);
inline uint32_t crc32c(std::string_view bytes) {
  return extend_crc32c(0, bytes);
}
// As extend_crc32c(), without the instruction; tests compare the fast one with
// it.
uint32_t extend_crc32c_portable(uint32_t crc, std::string_view bytes);

// The checksum of a concatenation: `first` is that of the first text, `second`
// that of the second one, which has `second_bytes`. Thread-safe.
uint32_t join_crc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

// The form in files: a checksum over bytes that contain a checksum would be
// weak. Thread-safe.
inline uint32_t mask_crc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace tagflow::checkpoint
