// CallFrames: the frame actors of calls, shared by all that call.
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

// Of one partition's run. A recursion needs as many frames as calls are open at
// once, which only the run knows; some of what it has needed once stays for the
// next one. take() and give() are thread-safe, the rest is for the time when
// the step is quiet.
class CallFrames {
 public:
  static constexpr size_t kMostKept = 1024;

  explicit CallFrames(const PartitionRun& run) : run_(run) {}

  // An idle frame actor for frame `plan` of the plan; the caller's until it is
  // given back.
  FrameActor* take(int plan, caf::actor_system& system);
  void give(FrameActor* frame);
  // More calls are open at once than there may be, as of a recursion that calls
  // itself twice, forever: it takes all memory before it is too deep.
  // Thread-safe.
  bool is_full() const {
    return open_.load(std::memory_order_relaxed) > run_.max_open_calls;
  }

  void collect(Counters& counters) const;
  // Forgets unfinished instances; all frames are idle then.
  void reset();
  // Ends the frames beyond kMostKept: a recursion that was deep once must not
  // keep what it needed. REQUIRES: all are idle.
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
