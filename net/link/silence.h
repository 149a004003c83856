// Silence: when a link is taken for lost because nothing arrives.
#pragma once

#include <chrono>

namespace tagflow::net {

// A sanitizer makes everything many times as slow.
#if defined(TAGFLOW_SANITIZES_ADDRESS) || defined(TAGFLOW_SANITIZES_THREAD)
inline constexpr int kSlowness = 20;
#else
inline constexpr int kSlowness = 1;
#endif

// How each side of a link knows that the other one lives: within an interval
// it sends something, or a Ping if it has nothing to send, and after so many
// intervals in which nothing arrived it gives up.
struct LifeSigns {
  std::chrono::milliseconds interval{300 * kSlowness};
  int most_silent = 5;
};

// Counts intervals, and reads no clock: the time in which this process was
// itself stopped is one interval, however long it was. So a process that wakes
// up first reads what its peers have sent. Thread-compatible.
class Silence {
 public:
  enum class Action { kNothing, kPing, kGiveUp };

  explicit Silence(int most_silent) : most_silent_(most_silent) {}
  // Any byte of the peer is a sign of life.
  void hear() { is_heard_ = true; }
  // What to do at the end of an interval, in which this side has sent
  // something, or nothing. A Ping to a silent peer asks for an answer.
  Action end_interval(bool has_sent) {
    silent_ = is_heard_ ? 0 : silent_ + 1;
    is_heard_ = false;
    if (silent_ >= most_silent_) return Action::kGiveUp;
    return silent_ > 0 || !has_sent ? Action::kPing : Action::kNothing;
  }

 private:
  int most_silent_;
  int silent_ = 0;
  bool is_heard_ = true;
};

}  // namespace tagflow::net
