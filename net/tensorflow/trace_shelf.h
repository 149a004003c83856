// TraceShelf: the traces of runs that clients want recorded.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "actors/watch/trace.h"
#include "graph/status.h"

namespace tagflow::net {

// Thread-safe.
class TraceShelf {
 public:
  // Of how many runs there may be traces at a time.
  explicit TraceShelf(size_t most) : most_(most) {}

  // ResourceExhausted if there are too many.
  Result<std::shared_ptr<actors::Trace>> take();
  // A run that was ended early may be recorded until its devices have ended it:
  // its trace stays for a while.
  void keep(std::shared_ptr<actors::Trace> trace);

 private:
  using Clock = std::chrono::steady_clock;

  const size_t most_;
  std::mutex mutex_;  // guards the below
  std::vector<std::weak_ptr<actors::Trace>> taken_;
  std::deque<std::pair<Clock::time_point, std::shared_ptr<actors::Trace>>>
      kept_;  // with the time until which
};

}  // namespace tagflow::net
