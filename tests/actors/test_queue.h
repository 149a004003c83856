// A minimal queue that runs share, and a variable: state that outlives a step.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "devices/kernel.h"
#include "graph/builder/builder.h"

namespace tagflow::actors {

// Of int32 scalars. Unbounded. Thread-safe.
class TestQueue {
 public:
  static TestQueue& global();

  // Hands it to who waits longest, or keeps it.
  void put(int value);
  // How many values there are, and how many wait for one.
  size_t size() const;
  size_t waiting() const;
  // For the next test. REQUIRES: nobody waits.
  void clear();

 private:
  friend class TakeKernel;
  class Taker;
  mutable std::mutex mutex_;
  std::deque<int> values_;
  std::deque<std::shared_ptr<Taker>> takers_;
};

// TestPut(x: int32) -> x, and TestTake() -> int32, which waits for a value.
graph::Output test_put(const graph::Scope& s, const graph::Input& x);
graph::Output test_take(const graph::Scope& s);

}  // namespace tagflow::actors
