// Life: whether the other end of a link is still there.
#pragma once

#include "net/protocol/ids.h"

namespace tagflow::net {

// Note [Life signs]
// Every byte from the other end is a sign of life; if it is silent, it is asked
// for one by a ping. Silence is counted in missed signs, not in time: once per
// interval the owner looks whether anything came, and the other end is lost
// after `most_missed` looks in a row without a sign. A process that was stopped
// for long thus misses one look, not all of them, and reads what has waited in
// its sockets before the next: it does not take the silence of its own sleep
// for the death of everybody else.
//
// Looks of a busy machine are late. So the next one comes sooner by as much, up
// to a quarter of an interval, and the delays do not add up.
//
// The loss comes five to six intervals after the last sign, less that quarter:
// 1.4 to 1.8 s, and the delay of the last look.
struct LifeRules {
  Duration interval = std::chrono::milliseconds(300);
  int most_missed = 5;
};

// When the look is due after one at `now` that was due at `due`.
Time next_look(Time due, Time now, Duration interval);

// One per link and end. Thread-safe: no; the owner calls from one thread.
class Life {
 public:
  enum class Verdict : uint8_t { kNothing, kPing, kLost };

  Life(Time now, LifeRules rules)
      : rules_(rules), next_(now + rules.interval) {}

  // Any byte has come.
  void on_heard() { was_heard_ = true; }

  // Looks, if it is time. After kLost every look says kLost.
  Verdict on_time(Time now);

  // When on_time() wants to be called.
  Time next() const { return next_; }

 private:
  LifeRules rules_;
  Time next_;
  int missed_ = 0;
  bool was_heard_ = false;
};

}  // namespace tagflow::net
