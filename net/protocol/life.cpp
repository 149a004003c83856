#include "net/protocol/life.h"

#include <algorithm>

namespace tagflow::net {

Time next_look(Time due, Time now, Duration interval) {
  // Not from `due` alone: after a long stop, a look counts once.
  return std::max(due + interval, now + interval - interval / 4);
}

Life::Verdict Life::on_time(Time now) {
  if (now < next_) return Verdict::kNothing;
  next_ = next_look(next_, now, rules_.interval);
  if (was_heard_) {
    was_heard_ = false;
    missed_ = 0;
    return Verdict::kNothing;
  }
  if (missed_ < rules_.most_missed) ++missed_;
  return missed_ == rules_.most_missed ? Verdict::kLost : Verdict::kPing;
}

}  // namespace tagflow::net
