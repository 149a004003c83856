// Runner: the thread's side of the fast path.
//
// Note [Hand-off]
// What an actor sends while it handles a batch is *posted*: it waits in the
// local queue of the Runner that drives this thread, linked through the batches
// themselves, until the handler has returned. Then the runner hands each batch
// to its receiver directly, in the same time slice, if the receiver is idle;
// otherwise it goes to the receiver's inbox and the scheduler. So a chain of
// actors costs no trip through the scheduler, and an actor still runs on one
// thread at a time.
//
// The newest goes first: an inner loop ends before the outer one runs ahead,
// while its tokens and its state are still in the cache, and tokens that are
// about to come to the same iteration meet there.
//
// The queue is flushed to the scheduler, for other workers to take, when the
// time slice (the quantum) is over, and before a kernel that is worth more
// than a hop. What is for another step than that in hand is never handed off:
// it goes to the scheduler at once, with a unit of its own, so that neither a
// thread that is lent nor the turn of one step is spent on another. With
// HandOff::kMailbox nothing is handed off at all: every batch is a message in
// the receiver's CAF mailbox.
//
// Note [Activity]
// A step is over when nothing of it is left to do. Each batch under way, and
// each kernel that will answer by itself, holds one unit of its step's
// activity. A handler consumes the unit of its batch; the first batch of the
// same step that it posts takes the unit over, others add one; if it posts
// none, the unit is given back once the actor is idle again. So a chain of
// hand-offs touches no shared counter, and the count reaches zero exactly when
// no actor of the step has anything to do: the run is complete, it waits for
// something outside (Note [Life of a step] in step.h), or it can make no
// progress. A receive that waits holds no unit.
//
// Note [Holding]
// To take hold of an actor and to let go of it cost an atomic exchange each,
// together a fifth of a small loop's iteration. So an iteration that was
// retired, having sent its successor one batch, the last, is not let go of at
// once: no batch is meant for it until its turn comes again, most likely in the
// hop after the next. The runner *holds* it, which to all others looks as if it
// ran: what they deliver waits in its inbox, for as long as the quantum at the
// most, and whoever lets go of it sees that. Two are held at most: a ring of
// two that takes turns.
//
// Invariants:
//   1. An actor is held only while a unit of its step lies in this runner's
//      queue or in the hand of its handler. So all are let go of before units
//      leave: before a flush or another delivery, and before the last unit in
//      hand is given back. No step can end while one of its actors is held.
//   2. The actor in hand is not among those that are held.
//   3. A trace is written to only while a unit of its step lies in this
//      runner's queue or in the hand of its handler.
//   4. With the other policies none is held: there the handler keeps a unit of
//      its own (take_unit), and gives it back in the end.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "actors/options.h"
#include "actors/runtime/batch.h"

namespace tagflow::actors {

class TraceBuffer;  // actors/watch/trace.h
class Worker;       // actors/runtime/scheduler.h

// Lives on the stack of a worker while it resumes an actor, or of a thread
// that lends itself to a run. Not thread-safe.
class Runner {
 public:
  using Clock = std::chrono::steady_clock;

  // `worker` is this thread's, null on a lent one. `quantum` bounds how long
  // drain() keeps the thread; that of a worker began with its time slice.
  // `recall`, where not null, says by a number above zero that the thread is
  // wanted elsewhere: then it is kept for no longer than to wake another one
  // would take.
  Runner(Worker* worker, HandOff policy, std::chrono::nanoseconds quantum,
         uint64_t seed = 0, const std::atomic<int>* recall = nullptr);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Sends `batch` to `target` when the current handler has returned. Takes
  // the batch; settles its unit of activity.
  void post(EngineActor* target, Batch* batch);
  // The same for work that may as well wait until nothing else is posted:
  // an iteration that runs ahead.
  void post_later(EngineActor* target, Batch* batch);
  // Posts a batch that brings its own unit of activity.
  void post_counted(EngineActor* target, Batch* batch);
  // The handler goes on with work that held no unit: it gets one if the unit
  // of its batch was taken over already.
  void renew(Step* step);
  // This thread's buffer of the trace of the step in hand, until leave_trace().
  TraceBuffer& trace(Trace& trace) {
    if (trace_ != &trace) find_trace(trace);
    return *trace_buffer_;
  }
  // Notes that the thread leaves the iteration it turned to last.
  void leave_trace();
  // Gives a unit back, if there is a step; leaves the trace before, which may
  // be gone afterwards.
  void give_back(Step* step);
  // Moves what is posted to the scheduler now.
  void flush();
  // Hands batches on until none is left or the quantum is over.
  void drain();
  // Whether the quantum is over and the thread is wanted: by others who wait
  // for a worker, or by its owner, where it is lent. Looks at the clock.
  bool must_yield();
  // The same for a loop of firings that calls it after a number of them: it
  // looks at the clock less often where they are quick.
  bool must_yield_between();
  // Whether a kernel that takes long may run on this thread: on a worker that
  // nobody waits for.
  bool may_stay() const;
  // Something took long: the clock is looked at before the next hop.
  void note_time() {
    hops_until_check_ = 1;
    looks_left_out_ = 0;
  }

  // The thread is not a worker's: it must be given back soon.
  bool lent() const { return worker_ == nullptr; }
  // It is a caller's, who may be slow: not an accelerator's.
  bool is_callers() const { return worker_ == nullptr && recall_ == nullptr; }

 private:
  friend class EngineActor;
  // Instead of letting go of `actor`. Lets go of who was held longest, if
  // that makes three. REQUIRES: the batch that took over the handler's unit is
  // still in the queue.
  void hold(EngineActor* actor);
  // Whether `actor` was held; now it is in hand.
  bool take_held(EngineActor* actor);
  void let_go_of_all();
  // Gives the batch its unit: that of the handler's, or a new one.
  void take_unit(Batch* batch);
  // To be handed on by this thread, whatever else holds.
  bool is_own(const Batch* batch) const;
  void push(EngineActor* target, Batch* batch);
  // Sends it by message where the policy says so, or to the scheduler where it
  // is for another step.
  bool sent_elsewhere(EngineActor* target, Batch* batch);
  bool over_quantum();
  bool must_yield_at(Clock::time_point now);
  Clock::time_point started();
  void find_trace(Trace& trace);
  bool coin();

  Worker* const worker_;
  HandOff policy_;
  std::chrono::nanoseconds quantum_;
  const std::atomic<int>* const recall_;
  Clock::time_point started_;  // of a lent thread, or where nobody else knows
  int hops_until_check_;
  Clock::time_point looked_;  // by must_yield_between()
  int looks_left_out_ = 0;    // before its next one
  uint64_t random_;
  // What is posted, the newest first.
  Batch* newest_ = nullptr;
  Batch* oldest_ = nullptr;
  std::array<EngineActor*, 2> held_{};
  // The step of the batch in hand; null before the first.
  Step* step_ = nullptr;
  // The unit of the batch in hand, until something takes it over.
  Step* credit_ = nullptr;
  // Of the step in hand, until leave_trace().
  Trace* trace_ = nullptr;
  TraceBuffer* trace_buffer_ = nullptr;
};

}  // namespace tagflow::actors
