// What the protocols of the cluster speak about, by distinct types.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace tagflow::net {

// The index of a task in the list of the cluster's tasks.
enum class TaskIndex : uint32_t {};

// A random number that a process draws when it has no state: at its start, and
// whenever it has lost its master. 0 is nobody's.
enum class Incarnation : uint64_t { kNone = 0 };

// The number of a step at its master: grows from 1, is never used again.
enum class StepId : uint64_t { kNone = 0 };

// Of a clock that only goes forward. The machines read no clock: the caller
// passes the time of each event.
using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

constexpr Time kNever = Time::max();

inline int64_t whole_milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration)
      .count();
}

// How many messages of a part have left for peers, and have come from them.
struct MessageCounts {
  uint64_t sent = 0;
  uint64_t received = 0;

  auto operator<=>(const MessageCounts&) const = default;
};

}  // namespace tagflow::net
