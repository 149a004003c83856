// AloneAtBorder: a moment between steps.
#pragma once

#include <chrono>
#include <vector>

#include "devices/state/state_actor.h"
#include "devices/state/state_lock.h"

namespace tagflow::actors {

class SharedState;

// Holds a border exclusively, from a successful wait() until its destruction:
// Note [Borders] in actors/shared_state.h. So long, and while it waits, room is
// made for what steps offer. Thread-compatible.
class AloneAtBorder {
 public:
  // The border is one of the state, which outlives it.
  AloneAtBorder(SharedState& state, devices::StateLock& border)
      : state_(state), border_(border) {}
  ~AloneAtBorder();
  AloneAtBorder(const AloneAtBorder&) = delete;
  AloneAtBorder& operator=(const AloneAtBorder&) = delete;

  // Blocks the thread until it holds the border, or the deadline has passed;
  // returns whether it holds the border. REQUIRES: it does not hold the border
  // yet.
  bool wait(std::chrono::steady_clock::time_point deadline);
  // As wait(), but lets steps pass only when the time is over.
  bool wait_once(std::chrono::milliseconds time);

 private:
  class Waiter;
  void make_room(bool on) noexcept;

  SharedState& state_;
  devices::StateLock& border_;
  std::vector<Ref<devices::StateActor>> actors_;  // for which room is made
  bool has_it_ = false;
};

}  // namespace tagflow::actors
