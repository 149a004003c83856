// TornState: whether the workers' states belong together.
#pragma once

#include "graph/status.h"

namespace tagflow::net {

// Note [Torn state]
// The variables of a graph live on several workers. They belong together if the
// same steps have updated all of them. Two events end this:
//   - a step that updates on more than one worker fails, after some worker has
//     committed an update of it. A step that fails before any commit (bad
//     feeds, the end of the input) tears nothing, so each worker's Done says
//     whether it has committed (MasterStep::Answer::tears);
//   - a worker that has state is lost: its variables are gone, the others' are
//     not.
// Then further updates are refused until a reset has dropped the state of all
// workers; a restore follows it. To restore the lost worker alone would not
// mend it: the others are some steps ahead. Reads are allowed. A session that
// tolerates torn state by its option (asynchronous training does, by design) is
// never refused.
//
// A reset mends only what was torn before it began: a worker that is lost
// meanwhile may have been reset, and lost again.
//
// One per master. Thread-safe: no.
class TornState {
 public:
  enum class Effect : uint8_t { kReads, kUpdates };

  explicit TornState(bool is_tolerated) : is_tolerated_(is_tolerated) {}

  // REQUIRES for these two: !why.ok()
  void on_torn(const Status& why) {
    ++num_torn_;
    if (why_.ok()) why_ = why;
  }
  // A worker that has state is lost.
  void on_lost(const Status& why) {
    on_torn(why);
    if (lost_.ok()) lost_ = why;
  }

  // Whether a step of this effect may begin. FailedPrecondition, with the first
  // reason, if it may not.
  Status check(Effect effect) const {
    if (why_.ok() || is_tolerated_ || effect == Effect::kReads) return Status();
    return error(Code::kFailedPrecondition,
                 "[run] the state of the workers is torn, so it is not updated "
                 "until all of it is reset: {}",
                 why_.message());
  }

  // Whether a snapshot has all that the workers should have, which belongs
  // together, unless that is tolerated. Unavailable, with the first reason, if
  // not: what is lost is lost to those who tolerate torn state, too.
  Status check_snapshot() const {
    if (lost_.ok() && (why_.ok() || is_tolerated_)) return Status();
    return error(Code::kUnavailable,
                 "[run] the state of the workers is torn, so it cannot be "
                 "saved until all of it is reset: {}",
                 (lost_.ok() ? why_ : lost_).message());
  }

  // To be kept from the begin of a reset, for on_mended().
  uint64_t num_torn() const { return num_torn_; }
  // A reset of all workers has succeeded.
  void on_mended(uint64_t num_torn_at_begin) {
    if (num_torn_at_begin == num_torn_) why_ = lost_ = Status();
  }

  bool is_torn() const { return !why_.ok(); }

 private:
  const bool is_tolerated_;
  uint64_t num_torn_ = 0;
  Status why_;
  Status lost_;
};

}  // namespace tagflow::net
