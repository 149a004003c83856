#include "devices/files/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tagflow::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little);

// The bits of a checksum are the coefficients of a polynomial over {0, 1}, the
// highest power in the lowest bit.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

constexpr uint32_t crc_product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1, b = times_x(b))
    if ((a & kOne) != 0) product ^= b;
  return product;
}

// The factor of a checksum when so many zero bytes follow.
constexpr uint32_t crc_shift(uint64_t bytes) {
  uint32_t power = kOne >> 8;  // x to the 8th: for one byte
  uint32_t shift = kOne;
  for (; bytes != 0; bytes >>= 1, power = crc_product(power, power))
    if ((bytes & 1) != 0) shift = crc_product(shift, power);
  return shift;
}

// kCrcTables[k][b]: the contribution of byte b, followed by k zero bytes.
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k)
    for (size_t b = 0; b < 256; ++b)
      tables[k][b] =
          (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xff];
  return tables;
}
constexpr CrcTables kCrcTables = make_crc_tables();

uint64_t load_word(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint32_t extend_by_tables(uint32_t state, const char* at, size_t count) {
  for (; count >= 8; at += 8, count -= 8) {
    const uint64_t word = load_word(at) ^ state;
    state = 0;
    for (size_t k = 0; k < 8; ++k)
      state ^= kCrcTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; count > 0; ++at, --count)
    state = (state >> 8) ^ kCrcTables[0][(state ^ uint8_t(*at)) & 0xff];
  return state;
}

#if defined(__x86_64__)

// The instruction has a throughput of one cycle and a latency of three: so
// three checksums of adjacent parts are computed side by side, and joined.
constexpr size_t kCrcPart = 8192;
constexpr uint32_t kCrcPartShift = crc_shift(kCrcPart);

[[gnu::target("sse4.2")]] uint32_t extend_by_instruction(uint32_t state,
                                                         const char* at,
                                                         size_t count) {
  uint64_t a = state;
  while (count >= 3 * kCrcPart) {
    uint64_t b = 0, c = 0;
    for (const char* end = at + kCrcPart; at < end; at += 8) {
      a = _mm_crc32_u64(a, load_word(at));
      b = _mm_crc32_u64(b, load_word(at + kCrcPart));
      c = _mm_crc32_u64(c, load_word(at + 2 * kCrcPart));
    }
    a = crc_product(uint32_t(a), kCrcPartShift) ^ b;
    a = crc_product(uint32_t(a), kCrcPartShift) ^ c;
    at += 2 * kCrcPart;
    count -= 3 * kCrcPart;
  }
  for (; count >= 8; at += 8, count -= 8) a = _mm_crc32_u64(a, load_word(at));
  state = uint32_t(a);
  for (; count > 0; ++at, --count) state = _mm_crc32_u8(state, uint8_t(*at));
  return state;
}

#endif

using CrcExtender = uint32_t (*)(uint32_t, const char*, size_t);

CrcExtender choose_crc_extender() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) return extend_by_instruction;
#endif
  return extend_by_tables;
}

}  // namespace

uint32_t extend_crc32c(uint32_t crc, std::string_view bytes) {
  static const CrcExtender extend = choose_crc_extender();
  return ~extend(~crc, bytes.data(), bytes.size());
}

uint32_t extend_crc32c_portable(uint32_t crc, std::string_view bytes) {
  return ~extend_by_tables(~crc, bytes.data(), bytes.size());
}

uint32_t join_crc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return crc_product(crc_shift(second_bytes), first) ^ second;
}

}  // namespace tagflow::checkpoint
