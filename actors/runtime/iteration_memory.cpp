// Limits the iterations in flight on a device whose memory has a limit.
#include <algorithm>

#include "actors/runtime/iteration_actor.h"
#include "devices/memory_ledger.h"

namespace tagflow::actors {

// Note [Budget]
// Each iteration in flight has tensors of its own; on an accelerator their
// kernels may still be queued, so that their memory is not in use yet. So the
// memory of an iteration is measured: while one runs alone, as the first one
// does, the peak use of the device's memory is recorded. From then on the next
// iteration begins ahead only if it and all iterations in flight could each
// take the measured memory, in addition to the memory in use now, without
// exceeding the limit. This counts some memory twice, so the estimate is
// conservative: near the limit fewer iterations overlap than would fit, and
// finally none do.
//
// An iteration that is held back begins when its predecessor is retired, with
// the baton, as in a window of 1. An iteration can wait for a later one only
// through objects outside of the step, such as queues. So a program with
// asynchronous kernels has no budget, and the budget causes no deadlock.

void IterationActor::note_memory_at_begin(int64_t iteration) {
  const bool is_alone =
      frame_.retired.load(std::memory_order_relaxed) == iteration;
  used_at_begin_ = is_alone ? frame_.run->memory->in_use() : -1;
  if (is_alone) frame_.run->memory->take_peak();
}

void IterationActor::note_memory_at_end() {
  if (used_at_begin_ >= 0 && sent_ == 0)
    frame_.iteration_bytes =
        std::max(frame_.iteration_bytes,
                 frame_.run->memory->take_peak() - used_at_begin_);
  frame_.retired.store(interpreter_.iteration() + 1, std::memory_order_relaxed);
}

// Whether the next iteration must wait for the end of this one.
bool IterationActor::lacks_memory_ahead() const {
  if (successor_ != nullptr) return false;  // it has begun
  if (frame_.iteration_bytes < 0) return true;
  const devices::MemoryLedger& memory = *frame_.run->memory;
  const int64_t in_flight = interpreter_.iteration() + 1 -
                            frame_.retired.load(std::memory_order_relaxed);
  return memory.in_use() + frame_.iteration_bytes * (in_flight + 1) >
         memory.limit();
}

}  // namespace tagflow::actors
