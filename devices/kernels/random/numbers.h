// Private to devices/kernels/random/: converts random words to numbers, with
// the same bits as TensorFlow.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "devices/philox.h"
#include "graph/dtype.h"
#include "graph/float16.h"

namespace tagflow::devices {

// Elements per block: doubles and 64-bit integers take two words.
template <class T>
inline constexpr int kElementsOfBlock = sizeof(T) == 8 ? 2 : 4;

// A number of [0, 1): random mantissa bits of 1.xxx, minus 1.
inline float unit_float(uint32_t word) {
  return std::bit_cast<float>(0x3f800000 | (word & 0x7fffff)) - 1;
}
inline double unit_double(uint32_t high, uint32_t low) {
  const uint64_t digits = uint64_t{high & 0xfffff} << 32 | low;
  return std::bit_cast<double>(uint64_t{1023} << 52 | digits) - 1;
}
inline Half unit_half(uint32_t word) {
  const auto bits = uint16_t(15 << 10 | (word & 0x3ff));
  return Half(float(std::bit_cast<Half>(bits)) - 1);
}
inline BFloat16 unit_bfloat16(uint32_t word) {
  const auto bits = uint16_t(127 << 7 | (word & 0x7f));
  return BFloat16(float(std::bit_cast<BFloat16>(bits)) - 1);
}

// Number i of a block, uniform in [0, 1).
template <class T>
T unit_of_block(const Philox::Block& block, int i) {
  const auto at = size_t(i);
  if constexpr (std::is_same_v<T, double>) {
    return unit_double(block[2 * at], block[2 * at + 1]);
  } else if constexpr (std::is_same_v<T, float>) {
    return unit_float(block[at]);
  } else if constexpr (std::is_same_v<T, Half>) {
    return unit_half(block[at]);
  } else {
    return unit_bfloat16(block[at]);
  }
}

// Integer i of a block, with all bits random.
template <class T>
std::make_unsigned_t<T> bits_of_block(const Philox::Block& block, int i) {
  const auto at = size_t(i);
  if constexpr (sizeof(T) == 8) {
    return block[2 * at] | uint64_t{block[2 * at + 1]} << 32;
  } else {
    return block[at];
  }
}

// Two independent standard normal numbers from two uniform ones, by Box and
// Muller. The first is kept away from 0, whose logarithm is infinite.
template <class Real>
void box_muller(Real uniform, Real turn, Real* normals) {
  uniform = std::max(uniform, Real(1e-7));
  const auto angle = Real(2 * std::numbers::pi * double(turn));
  const Real radius = std::sqrt(Real(-2) * std::log(uniform));
  normals[0] = std::sin(angle) * radius;
  normals[1] = std::cos(angle) * radius;
}
// The type in which normal numbers are computed: float for halves.
template <class T>
using NormalReal = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The normal numbers of one block.
template <class T>
void normals_of_block(const Philox::Block& block, NormalReal<T>* normals) {
  if constexpr (std::is_same_v<T, double>) {
    box_muller(unit_double(block[0], block[1]), unit_double(block[2], block[3]),
               normals);
  } else {
    box_muller(unit_float(block[0]), unit_float(block[1]), normals);
    box_muller(unit_float(block[2]), unit_float(block[3]), normals + 2);
  }
}

// Doubles one by one, the second of a block before its first: uniform or normal
// ones. Several may take blocks from one stream in turn.
template <bool kNormal>
class BackwardDoubles {
 public:
  explicit BackwardDoubles(Philox& stream) : stream_(stream) {}
  double next() {
    if (left_ == 0) draw();
    return numbers_[--left_];
  }

 private:
  void draw() {
    const Philox::Block block = stream_.next();
    if constexpr (kNormal) {
      normals_of_block<double>(block, numbers_);
    } else {
      for (int i = 0; i < 2; ++i) numbers_[i] = unit_of_block<double>(block, i);
    }
    left_ = 2;
  }

  Philox& stream_;
  double numbers_[2] = {};
  int left_ = 0;
};
using BackwardUnits = BackwardDoubles<false>;
using BackwardNormals = BackwardDoubles<true>;

}  // namespace tagflow::devices
