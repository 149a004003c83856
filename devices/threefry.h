// Threefry2x32-20: a keyed function of 64 bits, from the same paper as Philox
// (devices/philox.h). It derives keys here; Philox draws the numbers.
#pragma once

#include <array>
#include <cstdint>

namespace tagflow::devices {

using ThreefryWords = std::array<uint32_t, 2>;

// For a fixed key it permutes the blocks; each key selects a permutation as if
// at random. Thread-safe.
ThreefryWords threefry2x32(const ThreefryWords& key,
                           const ThreefryWords& block);

}  // namespace tagflow::devices
