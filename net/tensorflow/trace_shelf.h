// TraceShelf: the traces of runs that clients want recorded.
#pragma once

#include <memory>
#include <mutex>
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
  // Keeps it for good: its run may go on, and nobody will know when it is over.
  // It counts as one that was taken.
  void keep(std::shared_ptr<actors::Trace> trace);

 private:
  const size_t most_;
  std::mutex mutex_;  // guards the below
  std::vector<std::weak_ptr<actors::Trace>> taken_;
  std::vector<std::shared_ptr<actors::Trace>> kept_;
};

}  // namespace tagflow::net
