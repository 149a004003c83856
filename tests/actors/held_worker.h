// Keeps the only worker of an engine busy.
#pragma once

#include <semaphore>

#include "actors/runtime/job.h"

namespace tagflow::actors {

// From its making on the worker waits, until it is let go. Lives until
// something that was enqueued later has run.
class HeldWorker {
 public:
  explicit HeldWorker(Scheduler& scheduler) {
    run_on_worker(scheduler, [this] {
      running_.release();
      go_on_.acquire();
    });
    running_.acquire();
  }
  HeldWorker(const HeldWorker&) = delete;
  HeldWorker& operator=(const HeldWorker&) = delete;

  void let_go() { go_on_.release(); }

 private:
  std::binary_semaphore running_{0}, go_on_{0};
};

}  // namespace tagflow::actors
