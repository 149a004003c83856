// Handles Ctrl-C and SIGTERM during runs.
#pragma once

#include <semaphore.h>

#include <chrono>
#include <thread>

#include "actors/session/session.h"
#include "apps/shared/program/exit_code.h"

namespace tagflow::apps {

// While it lives, the first SIGINT or SIGTERM cancels the runs that have its
// token, and the second one ends the process at once, with 128 + its number.
// With `patience`, runs are cancelled only after that time, so that a caller
// that starts many runs can check signal() in between and end by itself.
// It handles SIGINT also if it was ignored, as in a background job of a
// script. REQUIRES: one at a time in a process.
class Interruptible {
 public:
  explicit Interruptible(std::chrono::seconds patience = {});
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  // Restores the previous signal handlers.
  ~Interruptible();

  const actors::CancelToken& token() const { return token_; }
  // The first signal's number; 0 if there was none. Thread-safe.
  int signal() const;
  // The failure for a run's status; if the signal cancelled the run, its
  // message and exit code say so.
  Failure failure_of(Status status) const;

 private:
  void watch();

  const std::chrono::seconds patience_;
  actors::CancelToken token_;
  std::thread watcher_;
};

}  // namespace tagflow::apps
