// MurmurHash: the 64-bit hash (MurmurHash64A) that TensorFlow uses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tagflow::devices {

// The first bytes of a text, at most 8, as a little-endian number.
inline uint64_t little_endian_word(std::string_view text) {
  uint64_t word = 0;
  for (size_t i = 0; i < std::min<size_t>(text.size(), 8); ++i)
    word |= uint64_t(uint8_t(text[i])) << (8 * i);
  return word;
}

// Takes a text in pieces. Thread-compatible.
class MurmurHash {
 public:
  // `size`: of the whole text.
  MurmurHash(uint64_t seed, size_t size)
      : hash_(seed ^ (uint64_t(size) * kFactor)) {}

  // REQUIRES: the size of all pieces but the last is a multiple of 8.
  void add(std::string_view piece) {
    for (; piece.size() >= 8; piece.remove_prefix(8)) {
      const uint64_t word = little_endian_word(piece) * kFactor;
      hash_ = (hash_ ^ ((word ^ (word >> kShift)) * kFactor)) * kFactor;
    }
    if (!piece.empty()) hash_ = (hash_ ^ little_endian_word(piece)) * kFactor;
  }
  uint64_t value() const {
    const uint64_t mixed = (hash_ ^ (hash_ >> kShift)) * kFactor;
    return mixed ^ (mixed >> kShift);
  }

 private:
  static constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  static constexpr int kShift = 47;
  uint64_t hash_;
};

}  // namespace tagflow::devices
