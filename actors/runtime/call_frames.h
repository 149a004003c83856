// CallFrames: the frame actors of calls, shared by all callers.
#pragma once

#include <atomic>
#include <caf/actor.hpp>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actors/runtime/frame.h"

namespace caf {
class actor_system;
}

namespace tagflow::actors {

// The frames of calls in one partition's run. A recursion needs as many frames
// as calls are open at once, which is known at run time only; some frames are
// kept for the next run. take() and give() are thread-safe; the other functions
// require a quiet step.
class CallFrames {
 public:
  static constexpr size_t kMostKept = 1024;

  explicit CallFrames(const PartitionRun& run) : run_(run) {}

  // Returns an idle frame actor for frame `plan` of the plan. The caller owns
  // it until give().
  FrameActor* take(int plan, caf::actor_system& system);
  void give(FrameActor* frame);
  // Whether more calls are open than the limit. An endless recursion that calls
  // itself twice would exhaust the memory before it reaches the depth limit.
  // Thread-safe.
  bool is_full() const {
    return open_.load(std::memory_order_relaxed) > run_.max_open_calls;
  }

  void collect(Counters& counters) const;
  // Discards unfinished instances; afterwards all frames are idle.
  void reset();
  // Ends the frames beyond kMostKept, so that a deep recursion does not keep
  // its memory forever. REQUIRES: all are idle.
  void trim();
  // Stops the actors.
  void stop();

 private:
  const PartitionRun& run_;
  std::atomic<int> open_{0};
  std::mutex mutex_;  // guards the below
  std::vector<caf::actor> all_;
  std::unordered_map<const FramePlan*, std::vector<FrameActor*>> idle_;
};

}  // namespace tagflow::actors
