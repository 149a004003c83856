// Data that the actors of one partition's run share, and data that the
// iterations of one frame instance share. Comments at the fields say who may
// access them.
#pragma once

#include <atomic>
#include <caf/actor.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/plan/plan.h"
#include "actors/runtime/batch.h"
#include "actors/runtime/step.h"
#include "actors/watch/observer.h"

namespace tagflow::devices {
class MemoryLedger;  // devices/memory_ledger.h
}

namespace tagflow::actors {

class CallFrames;  // actors/runtime/call_frames.h
class FrameActor;
class IterationActor;
class PeerWait;  // actors/runtime/peer_wait.h
class Rendezvous;

// Statistics. Each actor has its own; they are added up when the step is over.
struct Counters {
  uint64_t fired = 0;
  uint64_t dead = 0;
  uint64_t frames = 0;
  uint64_t iterations = 0;
  uint64_t hops = 0;
  uint64_t offloaded = 0;
  uint64_t launched = 0;
  uint64_t stale = 0;
  uint64_t max_in_flight = 0;

  // All but max_in_flight, which does not add up.
  void subtract(const Counters& other);
  void add_to(RunStats& stats) const;
};

// Batches that wait, linked through themselves.
struct BatchQueue {
  bool empty() const { return first == nullptr; }
  void push(Batch* batch) {
    batch->next = nullptr;
    (first == nullptr ? first : last->next) = batch;
    last = batch;
  }
  // REQUIRES: there is one.
  Batch* pop() {
    Batch* const batch = first;
    first = batch->next;
    return batch;
  }
  Batch* first = nullptr;
  Batch* last = nullptr;
};

// The kernels of one run that wait at its device. They keep their order, except
// that those that free memory go first: Note [Freeing first] in
// kernel_request.h. Only the device's actor accesses it.
struct StepQueue {
  bool empty() const { return freeing.empty() && others.empty(); }
  void push(Batch* batch, bool frees) {
    (frees ? freeing : others).push(batch);
  }
  // REQUIRES: there is one.
  Batch* pop() { return (freeing.empty() ? others : freeing).pop(); }
  BatchQueue freeing, others;
  StepQueue* next = nullptr;  // the run whose turn is after this one's
};

// One partition's part of a run, reused from step to step. Set before a step
// starts, read by all its actors.
struct PartitionRun {
  const Plan* plan = nullptr;
  HandOff policy = HandOff::kDirect;
  int workers = 1;
  // Where expensive kernels run, and the allocator that they use.
  EngineActor* device = nullptr;
  Allocator* allocator = nullptr;
  bool accelerated = false;  // the device is an accelerator
  // Counts the device's memory, if that limits the iterations in flight: Note
  // [Budget] in iteration_memory.cpp. Otherwise null.
  devices::MemoryLedger* memory = nullptr;
  int max_call_depth = 0;
  int max_open_calls = 0;
  BatchStore* batches = nullptr;     // of all actors of the run
  mutable StepQueue queue;           // at the device
  CallFrames* calls = nullptr;       // the partition's
  Rendezvous* rendezvous = nullptr;  // of all partitions
  PeerWait* peers = nullptr;         // of the step in hand, if it has peers
};

// The loop constants of a frame instance that have arrived: a prefix of those
// that the frame actor keeps. Immutable once an iteration has seen it: for a
// late constant, a new set is made.
struct ConstSet {
  uint64_t epoch = 0;   // unique for each content, over the frame's life
  bool steady = false;  // all have come, alive: Note [Loop constants]
  std::span<const Token> tokens;
};

// One instance of a frame. The frame actor writes its fields before iteration 0
// starts, unless a comment says otherwise.
struct FrameInstance {
  const PartitionRun* run = nullptr;
  const FramePlan* plan = nullptr;
  FrameActor* actor = nullptr;
  Step* step = nullptr;
  Observer* observer = nullptr;
  Trace* trace = nullptr;
  bool watched = false;           // observed, traced or both
  uint32_t trace_number = 0;      // of the instance, in the trace
  uint64_t generation = 0;        // counts the instances of this object
  uint64_t step_id = 0;           // valid after the end of the step
  devices::Tag tag;               // of the instance; iteration unused
  int window = 1;                 // iterations in flight at once
  EngineActor* parent = nullptr;  // the return address
  int64_t parent_iteration = 0;
  uint32_t ordinal = 0;  // among the parent's children
  int call_depth = 0;    // calls that enclose this instance
  Location location(const devices::Tag& at) const {
    return {plan->name, at, run->plan->device_name, this};
  }
  // All iteration actors, in order of spawning; how many of them are in the
  // ring; and those put aside, linked like the ring. While the instance runs,
  // the newest iteration owns them, and passes the ownership to the next.
  std::vector<caf::actor> iterations;
  int ring_size = 1;
  IterationActor* spare = nullptr;
  // Note [Budget], if the run has one: how many iterations are retired, written
  // by each of them; and the memory of an iteration, measured when one ran
  // alone, over all instances; -1: unknown.
  std::atomic<int64_t> retired{0};
  int64_t iteration_bytes = -1;
};

}  // namespace tagflow::actors
