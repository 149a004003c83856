#include "net/protocol/life.h"

namespace tagflow::net {

Life::Verdict Life::on_time(Time now) {
  if (now < next_) return Verdict::kNothing;
  // From now, not from next_: a late look counts once.
  next_ = now + rules_.interval;
  if (was_heard_) {
    was_heard_ = false;
    missed_ = 0;
    return Verdict::kNothing;
  }
  if (missed_ < rules_.most_missed) ++missed_;
  return missed_ == rules_.most_missed ? Verdict::kLost : Verdict::kPing;
}

}  // namespace tagflow::net
