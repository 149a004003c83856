// Runner: the state of a thread that runs actors on the fast path.
//
// Note [Hand-off]
// A batch that an actor sends while it handles another batch is *posted*: it
// waits in the local queue of the thread's Runner, an intrusive list, until the
// handler has returned. Then the runner hands each batch directly to its
// receiver, in the same time slice, if the receiver is idle; otherwise it
// pushes the batch to the receiver's inbox, and the scheduler runs the
// receiver. So a chain of actors does not use the scheduler, and an actor still
// runs on one thread at a time.
//
// The newest batch goes first: an inner loop ends before the outer one runs
// ahead, while its tokens and its state are still in the cache, and tokens for
// the same iteration arrive there together.
//
// The queue is flushed to the scheduler, for other workers, when the time slice
// (the quantum) is over, and before a kernel that is worth a hop. A batch for a
// step other than the current one is never handed off: it goes to the scheduler
// at once, with a unit of its own, so that neither a lent thread nor the turn
// of one step is used for another step. With HandOff::kMailbox no batch is
// handed off: every batch is a message in the receiver's CAF mailbox.
//
// Note [Activity]
// A step is over when it has no work left. Each batch in flight, and each
// kernel that will answer by itself, holds one unit of its step's activity. A
// handler consumes the unit of its batch. The first batch of the same step that
// it posts takes this unit over, and each further one adds a unit. If it posts
// none, the unit is given back once the actor is idle again. So a chain of
// hand-offs accesses no shared counter. The count reaches zero exactly when no
// actor of the step has work: the run is complete, it waits for something
// outside (Note [Life of a step] in step.h), or it can make no progress. A
// waiting Recv holds no unit.
//
// Note [Holding]
// To acquire and to release an actor costs an atomic exchange each, together a
// fifth of the time of a small loop's iteration. So an iteration actor is not
// released at once if its iteration was retired and had sent its successor only
// one batch, the last one: it gets no batch until its turn in the ring comes
// again, most likely in the hop after the next. The runner *holds* the actor,
// which looks to all other threads as if it were running: batches that they
// deliver wait in its inbox, for one quantum at most, and the release finds
// them. A runner holds at most two actors, which is a ring of two.
//
// Invariants:
//   1. An actor is held only while this runner's queue or its handler has a
//      unit of the actor's step. So all actors are released before units leave:
//      before a flush or another delivery, and before the last unit in hand is
//      given back. No step can end while one of its actors is held.
//   2. The running actor is not among the held ones.
//   3. A trace is written to only while this runner's queue or its handler has
//      a unit of its step.
//   4. With the other policies no actor is held: there the handler keeps a unit
//      of its own (take_unit), and gives it back at its end.
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
  // drain() keeps the thread; that of a worker began with its time slice. While
  // `recall` is not null and above zero, the thread is needed elsewhere: then
  // drain() keeps it no longer than waking another thread would take.
  Runner(Worker* worker, HandOff policy, std::chrono::nanoseconds quantum,
         uint64_t seed = 0, const std::atomic<int>* recall = nullptr);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Sends `batch` to `target` when the current handler has returned. Takes the
  // batch, and gives it its unit of activity.
  void post(EngineActor* target, Batch* batch);
  // As post(), for a batch that can wait until nothing else is posted, such as
  // that of an iteration that runs ahead.
  void post_later(EngineActor* target, Batch* batch);
  // Posts a batch that already has a unit of activity.
  void post_counted(EngineActor* target, Batch* batch);
  // The handler continues with work that has no unit: adds one if the unit of
  // its batch was taken over already.
  void renew(Step* step);
  // This thread's buffer of the trace of the step in hand, until leave_trace().
  TraceBuffer& trace(Trace& trace) {
    if (trace_ != &trace) find_trace(trace);
    return *trace_buffer_;
  }
  // Records that the thread leaves the iteration that it turned to last.
  void leave_trace();
  // Gives a unit back, if there is a step; leaves the trace first, which may be
  // destroyed afterwards.
  void give_back(Step* step);
  // Moves all posted batches to the scheduler now.
  void flush();
  // Hands off batches until none is left or the quantum is over.
  void drain();
  // Whether the quantum is over and the thread is needed elsewhere: by actors
  // that wait for a worker, or, if it is lent, by its owner. Reads the clock.
  bool must_yield();
  // As must_yield(), for a loop of firings that calls it after a number of
  // firings: it reads the clock less often if these are quick.
  bool must_yield_between();
  // Whether an expensive kernel may run on this thread: true on a worker that
  // no other actor waits for.
  bool may_stay() const;
  // The last work took long: the clock is read before the next hop.
  void note_time() {
    hops_until_check_ = 1;
    looks_left_out_ = 0;
  }

  // Whether the thread is not a worker: then it must be returned soon.
  bool lent() const { return worker_ == nullptr; }
  // Whether it is a lent thread of a caller, who may be slow, not of an
  // accelerator.
  bool is_callers() const { return worker_ == nullptr && recall_ == nullptr; }

 private:
  friend class EngineActor;
  // Holds `actor` instead of releasing it. Releases the actor that was held
  // longest, if there would be three. REQUIRES: the batch that took over the
  // handler's unit is still in the queue.
  void hold(EngineActor* actor);
  // Returns whether `actor` was held; then it is the running actor now.
  bool take_held(EngineActor* actor);
  void let_go_of_all();
  // Gives the batch its unit: the handler's, or a new one.
  void take_unit(Batch* batch);
  // Whether this thread hands off the batch in any case.
  bool is_own(const Batch* batch) const;
  void push(EngineActor* target, Batch* batch);
  // Sends the batch as a message if the policy requires it, or to the scheduler
  // if it is for another step; returns whether it did.
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
  Clock::time_point started_;  // for a lent thread, or if unknown otherwise
  int hops_until_check_;
  Clock::time_point looked_;  // by must_yield_between()
  int looks_left_out_ = 0;    // before its next one
  uint64_t random_;
  // The posted batches, the newest first.
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
