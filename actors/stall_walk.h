// What a Recv that waits for its token waits for in the end.
#pragma once

#include <string>

#include "actors/quiet_step.h"

namespace tagflow::actors {

// The child frames that run in the iteration: f(ordinal, frame).
template <class F>
void each_live_child(const IterationActor& iteration, F f) {
  for (uint32_t c = 0; c < iteration.children().size(); ++c)
    if (iteration.child_live(c)) f(c, *iteration.children()[c]);
}

// The tensor that a Recv waits for, and who owes it.
struct Debt {
  std::string tensor;   // "x", or "x:1" of another output
  std::string device;   // that sends it, "CPU:0"
  bool is_sent = true;  // by any partition
  // The Send has not sent it, in an iteration that has begun.
  bool is_open = false;
  // What the Send waits for in the end, "frame "while" of CPU:0"; empty where
  // that is the tensor's own node, or is not known.
  std::string cause;
};

// REQUIRES: the node is a Recv.
Debt find_debt(QuietStep& step, const IterationActor& iteration, uint32_t recv);

}  // namespace tagflow::actors
