// AloneAtBorder: a moment between steps.
#pragma once

#include <chrono>

#include "devices/state/state_lock.h"

namespace tagflow::actors {

// Has the border alone, from the end of a successful wait() until its own end:
// Note [Borders] in actors/shared_state.h. Thread-compatible.
class AloneAtBorder {
 public:
  // The border outlives it.
  explicit AloneAtBorder(devices::StateLock& border) : border_(border) {}
  ~AloneAtBorder();
  AloneAtBorder(const AloneAtBorder&) = delete;
  AloneAtBorder& operator=(const AloneAtBorder&) = delete;

  // Blocks the thread until it has the border, or the deadline has passed; says
  // whether it has it. REQUIRES: it does not have it yet.
  bool wait(std::chrono::steady_clock::time_point deadline);

 private:
  class Waiter;
  bool try_for(std::chrono::milliseconds time);

  devices::StateLock& border_;
  bool has_it_ = false;
};

}  // namespace tagflow::actors
