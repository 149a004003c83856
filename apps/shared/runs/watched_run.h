// Watches for signals and stalls while a command waits for its runs.
#pragma once

#include <chrono>
#include <utility>

#include "apps/shared/runs/interrupt.h"
#include "apps/shared/runs/stall_watch.h"

namespace tagflow::apps {

// While it lives, a signal or a stall of the session cancels the runs that have
// its token, under the rules of Interruptible and StallWatch.
class WatchedRun {
 public:
  explicit WatchedRun(actors::Session& session, bool between_runs = false,
                      std::chrono::seconds patience = {})
      : interruptible_(patience),
        watch_(session, interruptible_.token(), between_runs) {}

  const actors::CancelToken& token() const { return interruptible_.token(); }
  // Whether a signal came.
  bool is_interrupted() const { return interruptible_.signal() != 0; }
  // As of StallWatch.
  void set_idle(bool is_idle) { watch_.set_idle(is_idle); }
  // The failure for a run's status, with the reason if the run was cancelled.
  Failure failure_of(Status status) const {
    return interruptible_.failure_of(watch_.status_of(std::move(status)));
  }

 private:
  const Interruptible interruptible_;
  StallWatch watch_;
};

}  // namespace tagflow::apps
