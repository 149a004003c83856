// Allowance: how much a peer may say on a control connection.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "net/protocol/ids.h"

namespace tagflow::net {

// What an actor is told waits in its mailbox, which has no limit. So a peer has
// an allowance, which grows with time up to kMost: enough to ask for the loads
// of all members that a catalogue can have, at once. Reads no clock.
// Thread-compatible.
class Allowance {
 public:
  // Bytes. A short message costs the actor as much as kLeast of a long one.
  static constexpr uint64_t kMost = uint64_t{8} << 20;
  static constexpr uint64_t kPerSecond = uint64_t{1} << 20;
  static constexpr uint64_t kLeast = uint64_t{1} << 10;

  explicit Allowance(Time now) : at_(now) {}
  // Whether the peer may say a message of so many bytes now. REQUIRES: the
  // times do not go back
  bool take(uint64_t bytes, Time now) {
    using std::chrono::milliseconds;
    const auto passed = std::chrono::duration_cast<milliseconds>(now - at_);
    constexpr milliseconds kFull(1000 * (kMost / kPerSecond));
    at_ += passed;
    left_ = std::min(
        kMost,
        left_ + kPerSecond * uint64_t(std::min(passed, kFull).count()) / 1000);
    bytes = std::max(bytes, kLeast);
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  Time at_;
  uint64_t left_ = kMost;
};

}  // namespace tagflow::net
