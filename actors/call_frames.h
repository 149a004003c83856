// CallFrames: the frame actors of calls, shared by all that call.
#pragma once

#include <algorithm>
#include <atomic>
#include <caf/actor.hpp>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actors/frame.h"

namespace caf {
class actor_system;
}

namespace tagflow::actors {

// Of one partition's run. A recursion needs as many frames as calls are open at
// once, which only the run knows; what it has needed once stays for the next
// one. take() and give() are thread-safe, the rest is for the time when the
// step is quiet.
class CallFrames {
 public:
  explicit CallFrames(const PartitionRun& run) : run_(run) {}

  // An idle frame actor for frame `plan` of the plan; the caller's until it is
  // given back.
  FrameActor* take(int plan, caf::actor_system& system);
  void give(FrameActor* frame);
  // More calls are open at once than a recursion that ends is likely to need,
  // as of one that calls itself twice, forever: they take all memory before
  // they are too deep. Thread-safe.
  bool is_full() const {
    return open_.load(std::memory_order_relaxed) > max_open();
  }
  size_t max_open() const {
    return std::max(size_t(1) << 17, 2 * size_t(run_.max_call_depth));
  }

  void collect(Counters& counters) const;
  // Forgets unfinished instances; all frames are idle then.
  void reset();
  // Stops the actors.
  void stop();

 private:
  const PartitionRun& run_;
  std::atomic<size_t> open_{0};
  std::mutex mutex_;  // guards the below
  std::vector<caf::actor> all_;
  std::unordered_map<const FramePlan*, std::vector<FrameActor*>> idle_;
};

}  // namespace tagflow::actors
