// The clock of Pings and Pongs.
#pragma once

#include <chrono>
#include <cstdint>

namespace tagflow::net {

// Nanoseconds of a clock that never goes back; of this process only.
inline uint64_t clock_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return uint64_t(std::chrono::nanoseconds(now).count());
}

}  // namespace tagflow::net
