#include "net/protocol/deadlock.h"

#include <algorithm>

namespace tagflow::net {

DeadlockWatch::Decision DeadlockWatch::on_report(size_t index,
                                                 const Report& report) {
  Part& part = parts_[index];
  if (part.is_over) return Decision::kNothing;
  is_changed_ |= !report.is_quiet || report.counts != part.counts;
  part.is_quiet = report.is_quiet;
  part.counts = report.counts;
  part.waits_for_runs = report.waits_for_runs;
  is_stalled_ &= report.is_quiet;
  if (part.is_asked && report.round == round_) {
    part.is_asked = false;
    if (--num_asked_ == 0 && !is_changed_) {
      is_stalled_ =
          std::any_of(parts_.begin(), parts_.end(),
                      [](const Part& each) { return each.waits_for_runs; });
      return is_stalled_ ? Decision::kStall : Decision::kDeadlock;
    }
  }
  return is_stalled_ ? Decision::kNothing : examine();
}

DeadlockWatch::Decision DeadlockWatch::on_over(size_t index,
                                               MessageCounts counts) {
  Part& part = parts_[index];
  if (part.is_over) return Decision::kNothing;
  num_asked_ -= part.is_asked;
  is_changed_ = true;
  is_stalled_ = false;
  part = {};
  part.is_over = true;
  part.is_quiet = true;
  part.counts = counts;
  return examine();
}

DeadlockWatch::Decision DeadlockWatch::examine() {
  if (num_asked_ > 0) return Decision::kNothing;
  MessageCounts sum;
  size_t num_waiting = 0;
  for (const Part& part : parts_) {
    if (!part.is_quiet) return Decision::kNothing;
    sum.sent += part.counts.sent;
    sum.received += part.counts.received;
    num_waiting += !part.is_over;
  }
  if (num_waiting == 0 || sum.sent != sum.received) return Decision::kNothing;
  ++round_;
  is_changed_ = false;
  num_asked_ = num_waiting;
  for (Part& part : parts_) part.is_asked = !part.is_over;
  return Decision::kAsk;
}

}  // namespace tagflow::net
