// Threefry2x32-20: a keyed function of 64 bits, from the same paper as Philox
// (devices/philox.h). It derives keys here; numbers are drawn by Philox.
#pragma once

#include <array>
#include <cstdint>

namespace tagflow::devices {

using ThreefryWords = std::array<uint32_t, 2>;

// For a fixed key a permutation of the blocks; for a fixed block, as if each
// key had another random one. Thread-safe.
ThreefryWords threefry2x32(const ThreefryWords& key,
                           const ThreefryWords& block);

}  // namespace tagflow::devices
