// The number of parts into which a computation is worth dividing.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tagflow::devices {

// For a computation that takes so many nanoseconds on one thread, where sharing
// costs each part a copy of so many bytes.
inline int64_t parts_worth_sharing(double nanoseconds, double bytes_each) {
  constexpr double kLeast = 60e3, kBytesPerNs = 8, kEnough = 16;
  // A cancellation waits for the end of a part.
  constexpr double kLongest = 100e6;
  return int64_t(
      std::clamp(nanoseconds / std::max(kLeast, bytes_each / kBytesPerNs),
                 nanoseconds > 2 * kLeast ? 2.0 : 1.0,
                 std::max(kEnough, nanoseconds / kLongest)));
}

}  // namespace tagflow::devices
