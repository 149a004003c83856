// What a command needs while it waits for its runs.
#pragma once

#include <chrono>
#include <utility>

#include "apps/common/interrupt.h"
#include "apps/common/stall_watch.h"

namespace tagflow::apps {

// As long as it lives, a signal or a stall of the session cancels the runs that
// have its token: see Interruptible and StallWatch, whose rules hold.
class WatchedRun {
 public:
  explicit WatchedRun(actors::Session& session, bool between_runs = false,
                      std::chrono::seconds patience = {})
      : interruptible_(patience),
        watch_(session, interruptible_.token(), between_runs) {}

  const actors::CancelToken& token() const { return interruptible_.token(); }
  // Whether a signal came.
  bool is_interrupted() const { return interruptible_.signal() != 0; }
  // Of a run's status: the error of who cancelled it, where somebody did.
  Failure failure_of(Status status) const {
    return interruptible_.failure_of(watch_.status_of(std::move(status)));
  }

 private:
  const Interruptible interruptible_;
  const StallWatch watch_;
};

}  // namespace tagflow::apps
