// How many iterations are in flight where memory has a limit.
#include <algorithm>

#include "actors/runtime/iteration_actor.h"
#include "devices/memory_ledger.h"

namespace tagflow::actors {

// Note [Budget]
// Each iteration in flight has tensors of its own, and on an accelerator their
// kernels may be queued, so that nothing of the memory is in use yet. So what
// an iteration takes is measured: while one runs alone, as the first one does,
// the largest use of the device's memory is taken down. From then on the next
// iteration begins ahead only where all that are in flight, and this one, could
// take as much beside what is in use now. What is in use counts some of it
// twice, so that the estimate is on the safe side: near the limit fewer
// iterations overlap than would fit, and in the end one goes after the other.
//
// An iteration that is held back begins when the one before it is retired, with
// the baton, as in a window of 1. No iteration waits for a later one but by
// what is outside of the step, as a queue. So a program of which some kernel is
// asynchronous has no budget, and no deadlock comes of it.

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

// Whether the next iteration has to wait for this one's end.
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
