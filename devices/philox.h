// Philox4x32-10: random numbers as a function of a key and a counter.
//
// From Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
// 3" (SC 2011). Every position of a stream is computed directly, so parts of an
// output can be drawn in any order, on any worker.
#pragma once

#include <array>
#include <cstdint>

namespace tagflow::devices {

// A stream of 2^128 blocks of four 32-bit numbers. A value, cheap to copy.
// Thread-compatible.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // At the block of that counter; of each word, the lower half comes first.
  Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
      : key_(key), low_(counter_low), high_(counter_high) {}

  uint64_t key() const { return key_; }
  uint64_t counter_low() const { return low_; }
  uint64_t counter_high() const { return high_; }

  // Returns the block at the counter, and advances the counter.
  Block next() {
    Block block{uint32_t(low_), uint32_t(low_ >> 32), uint32_t(high_),
                uint32_t(high_ >> 32)};
    auto key0 = uint32_t(key_);
    auto key1 = uint32_t(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xd2511f53} * block[0];
      const uint64_t b = uint64_t{0xcd9e8d57} * block[2];
      block = {uint32_t(b >> 32) ^ block[1] ^ key0, uint32_t(b),
               uint32_t(a >> 32) ^ block[3] ^ key1, uint32_t(a)};
      key0 += 0x9e3779b9;  // the golden ratio
      key1 += 0xbb67ae85;  // the square root of 3, minus 1
    }
    skip(1);
    return block;
  }

  // Advances the counter; it wraps around at its end.
  void skip(uint64_t blocks) {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }
  Philox skipped(uint64_t blocks) const {
    Philox other = *this;
    other.skip(blocks);
    return other;
  }

 private:
  uint64_t key_;
  uint64_t low_;
  uint64_t high_;
};

}  // namespace tagflow::devices
