// Ctrl-C, and SIGTERM, during runs.
#pragma once

#include <semaphore.h>

#include <chrono>
#include <thread>

#include "actors/session/session.h"
#include "apps/common/exit_code.h"

namespace tagflow::apps {

// While it lives, the first SIGINT or SIGTERM cancels the runs that have its
// token, and the second one ends the process at once, with 128 + its number.
// With patience, runs are cancelled when that is over: whoever starts many asks
// for the signal in between, and ends by itself.
// Also where SIGINT was ignored, as in what a script starts in the background:
// whoever sends it means the run. REQUIRES: one at a time in a process.
class Interruptible {
 public:
  explicit Interruptible(std::chrono::seconds patience = {});
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  // What the signals did before, they do again.
  ~Interruptible();

  const actors::CancelToken& token() const { return token_; }
  // The first signal's number; 0 where none came. Thread-safe.
  int signal() const;
  // Of a run's status: where the signal cancelled it, so the message and the
  // exit code say.
  Failure failure_of(Status status) const;

 private:
  void watch();

  const std::chrono::seconds patience_;
  actors::CancelToken token_;
  std::thread watcher_;
};

}  // namespace tagflow::apps
