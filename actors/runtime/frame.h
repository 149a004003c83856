// What the actors of one partition's run share, and what the iterations of one
// frame instance share. Plain data; who may touch what is said at each field.
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
class Rendezvous;

// Counts of what happened, kept by each actor for itself and added up when the
// step is over.
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

// What one run has waiting at its device: kernels, in their order, but for
// those that free memory, which go first: Note [Freeing first] in
// device_actor.h. The device's actor alone touches it.
struct StepTurn {
  bool empty() const { return freeing.empty() && others.empty(); }
  void push(Batch* batch, bool frees) {
    (frees ? freeing : others).push(batch);
  }
  // REQUIRES: there is one.
  Batch* pop() { return (freeing.empty() ? others : freeing).pop(); }
  BatchQueue freeing, others;
  StepTurn* next = nullptr;  // the run whose turn is after this one's
};

// One partition's share in a run, from step to step. Set before a step starts,
// read by all its actors.
struct PartitionRun {
  const Plan* plan = nullptr;
  HandOff policy = HandOff::kDirect;
  int workers = 1;
  // Where kernels run that are worth a hop, and what they allocate from.
  EngineActor* device = nullptr;
  Allocator* allocator = nullptr;
  bool accelerated = false;  // the device is an accelerator
  // What counts the device's memory, where that bounds how many iterations are
  // in flight: Note [Budget] in iteration_memory.cpp. Else null.
  devices::MemoryLedger* memory = nullptr;
  int max_call_depth = 0;
  int max_open_calls = 0;
  BatchStore* batches = nullptr;     // of all actors of the run
  mutable StepTurn turn;             // at the device
  CallFrames* calls = nullptr;       // the partition's
  Rendezvous* rendezvous = nullptr;  // of all partitions
};

// The loop constants of a frame instance that have arrived: the first ones of
// those that the frame actor keeps. Immutable once an iteration has seen it: a
// late constant makes a new one.
struct ConstSet {
  uint64_t epoch = 0;   // distinct for every content, over the frame's life
  bool steady = false;  // all are there and alive: Note [Loop constants]
  std::span<const Token> tokens;
};

// One instance of a frame. Its fields are written by the frame actor before
// iteration 0 starts, but where said otherwise.
struct FrameInstance {
  const PartitionRun* run = nullptr;
  const FramePlan* plan = nullptr;
  FrameActor* actor = nullptr;
  Step* step = nullptr;
  Observer* observer = nullptr;
  Trace* trace = nullptr;
  bool watched = false;           // observed, traced or both
  uint32_t trace_number = 0;      // of the instance, in the trace
  uint64_t generation = 0;        // counts the instances that this object was
  uint64_t step_id = 0;           // stays, when the step has gone
  devices::Tag tag;               // of the instance; iteration unused
  int window = 1;                 // iterations in flight at once
  EngineActor* parent = nullptr;  // the return address
  int64_t parent_iteration = 0;
  uint32_t ordinal = 0;  // among the parent's children
  int call_depth = 0;    // calls that this instance is inside of
  Location location(const devices::Tag& at) const {
    return {plan->name, at, run->plan->device_name, this};
  }
  // All iteration actors, in order of spawning; how many of them are in the
  // ring; those put aside, linked as the ring is. While the instance runs they
  // are the newest iteration's, whose right to them travels with the hand-over
  // to the next.
  std::vector<caf::actor> iterations;
  int ring_size = 1;
  IterationActor* spare = nullptr;
  // Note [Budget], where the run has one: how many iterations are retired, by
  // the one that is; what one takes, by one that was alone, over all instances;
  // -1: not known.
  std::atomic<int64_t> retired{0};
  int64_t iteration_bytes = -1;
};

}  // namespace tagflow::actors
