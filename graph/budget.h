// Budget: how long the work before a run may take.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "graph/status.h"

namespace tagflow::graph {

// What reads a graph, inlines functions, runs passes, makes gradients or
// compiles a plan is given a budget (Limits::budget), and asks it as often as
// it handles a node. So a time-out and a cancellation also end the work before
// a run. Thread-compatible: one thread at a time works with it.
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    // Zero: no time-out.
    std::chrono::nanoseconds timeout{0};
    Clock::time_point start = Clock::now();
    // Empty: nobody cancels. It is called on the thread that works.
    std::function<bool()> is_cancelled = {};
  };

  explicit Budget(Options options);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // What is done from now on: errors say that the time-out passed "while
  // `stage`". The count of nodes starts again.
  void begin(std::string stage);
  // Counts nodes that were handled. DeadlineExceeded or Cancelled if the work
  // must end. It reads the clock once per kPeriod nodes.
  Status check(uint64_t nodes = 1) {
    nodes_ += nodes;
    return nodes_ < next_look_ ? Status() : look();
  }
  // As check(), but always reads the clock.
  Status look();

 private:
  // A node takes microseconds in each stage, so a look is late by less than a
  // millisecond or two.
  static constexpr uint64_t kPeriod = 256;

  const Options options_;
  std::string stage_ = "it was prepared";
  uint64_t nodes_ = 0;  // of the stage
  uint64_t next_look_ = kPeriod;
};

// For budgets that may be null, which means that there is no limit.
inline void begin_stage(Budget* budget, const char* stage) {
  if (budget != nullptr) budget->begin(stage);
}
inline Status check_budget(Budget* budget, uint64_t nodes = 1) {
  return budget == nullptr ? Status() : budget->check(nodes);
}

}  // namespace tagflow::graph
