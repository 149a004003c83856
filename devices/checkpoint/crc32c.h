// CRC-32C, the checksum of checkpoint files.
#pragma once

#include <cstdint>
#include <string_view>

namespace tagflow::checkpoint {

// The checksum of what `crc` is the checksum of, followed by `bytes`; that of
// nothing is 0. By the processor's instruction where there is one: faster than
// memory. Thread-safe.
uint32_t extend_crc32c(uint32_t crc, std::string_view bytes);
inline uint32_t crc32c(std::string_view bytes) {
  return extend_crc32c(0, bytes);
}
// The same without the instruction: what the fast one is compared with.
uint32_t extend_crc32c_portable(uint32_t crc, std::string_view bytes);

// The checksum of two texts, one after the other, of `first` that of the one
// and `second` that of the other, which has `second_bytes`. Thread-safe.
uint32_t join_crc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

// The form that files hold: a checksum over bytes that have one among them
// would be weak. Thread-safe.
inline uint32_t mask_crc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace tagflow::checkpoint
