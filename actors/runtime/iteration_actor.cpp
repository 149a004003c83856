#include "actors/runtime/iteration_actor.h"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/runtime/call_frames.h"
#include "actors/runtime/frame_actor.h"
#include "actors/runtime/hold.h"
#include "actors/runtime/rendezvous.h"
#include "actors/runtime/token_path.h"
#include "actors/watch/observer.h"
#include "devices/thread_activity.h"

// The memory limit of iterations in flight is in iteration_memory.cpp.

namespace tagflow::actors {

IterationActor::IterationActor(caf::actor_config& config, FrameInstance& frame)
    : EngineActor(config, frame.run->policy, frame.run->batches),
      frame_(frame),
      plan_(*frame.plan),
      has_budget_(frame.run->memory != nullptr),
      interpreter_(frame, pool(), this),
      out_(interpreter_.out()),
      next_(this),
      children_(plan_.children.size()),
      child_handles_(plan_.children.size()),
      child_received_(plan_.children.size()),
      child_expected_(plan_.children.size()) {
  turn_.kind = BatchKind::kIdle;
}

// --- Handling a batch -------------------------------------------------------

void IterationActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->step->interrupted()) [[unlikely]] {
    if (is_held_back(batch)) return;
    if (batch->step->cancelled()) return drop(batch);
  }
  if (batch->kind == BatchKind::kTokens) [[likely]] {
    if (!on_tokens(batch, runner)) return;
  } else if (!on_other(batch, runner)) {
    return;
  }
  work(runner);
}

// Whether the step's hold has parked the batch.
bool IterationActor::is_held_back(Batch* batch) {
  Hold* const hold = batch->step->hold.get();
  if (hold == nullptr) return false;
  const bool begins = batch->kind == BatchKind::kTokens && !busy() &&
                      batch->generation == frame_.generation;
  return hold->take(*this, batch, begins ? &frame_ : nullptr);
}

// Takes tokens of the predecessor or the frame. False if the batch is stale, or
// must wait for its iteration.
inline bool IterationActor::on_tokens(Batch* batch, Runner& runner) {
  if (batch->generation != frame_.generation) [[unlikely]] {
    ++counters_.stale;
    pool().give(batch);
    return false;
  }
  if (!busy()) {
    begin(batch->step, batch->iteration, batch->constants, runner);
  } else if (batch->iteration != interpreter_.iteration()) {
    parked_.push_back(batch);
    return false;
  } else if (interpreter_.is_watched()) [[unlikely]] {
    interpreter_.switch_to(runner);
  }
  take_tokens(batch);
  return true;
}

// Takes an answer of a child frame, a kernel or a Recv, or this actor's next
// turn. False if there is nothing to do.
bool IterationActor::on_other(Batch* batch, Runner& runner) {
  if (batch->kind == BatchKind::kIdle) {
    turn_is_posted_ = false;
    if (!busy()) return false;
  }
  if (interpreter_.is_watched()) [[unlikely]]
    interpreter_.switch_to(runner);
  switch (batch->kind) {
    case BatchKind::kExit:
      if (is_call(batch->ordinal)) {
        take_return(batch);
      } else {
        take_child_end(*batch);
        take_tokens(batch);
      }
      break;
    case BatchKind::kKernel:
      take_answer(*batch->request, runner);
      return false;
    case BatchKind::kReceived:
      interpreter_.take_received(*batch);
      pool().give(batch);
      break;
    case BatchKind::kIdle:  // noted above
      break;
    default:
      pool().give(batch);
      return false;
  }
  return true;
}

// Takes the answer, and runs the nodes that it makes ready.
void IterationActor::take_answer(KernelRequest& request, Runner& runner) {
  // Ends the turn even if an exception is thrown.
  struct Ending {
    ~Ending() { turn.end(); }
    TakingPermit& turn;
  } const ending{taken_};
  taken_ = std::move(request.taking);
  if (request.is_granted) {
    // It may have waited for long, and may be expensive: a lane computes it.
    ++counters_.offloaded;
    runner.post(frame_.run->device, &request.batch);
  } else {
    interpreter_.take_answer(request);
  }
  work(runner);
}

// Drops a batch of a cancelled step. What is kept is for the message of the
// step: a request that is answered now was not in time.
void IterationActor::drop(Batch* batch) {
  const devices::StepWork work(batch->step->info);
  if (batch->kind == BatchKind::kKernel) {
    batch->request->claim.release();
    batch->request->taking.end();
    return;
  }
  if (batch->kind == BatchKind::kIdle) {
    turn_is_posted_ = false;
    return;
  }
  if (batch->kind == BatchKind::kTokens && !busy() &&
      batch->generation == frame_.generation) {
    interpreter_.note_unstarted(batch->iteration);
    generation_ = 0;
    busy_.store(true, std::memory_order_relaxed);
  }
  pool().give(batch);
}

inline void IterationActor::begin(Step* step, int64_t iteration,
                                  const ConstSet* constants, Runner& runner) {
  busy_.store(true, std::memory_order_relaxed);
  set_at_rest(false);
  generation_ = frame_.generation;
  predecessor_done_ = false;
  received_ = 0;
  expected_ = 0;
  sent_ = 0;
  exit_batches_ = 0;
  successor_ = nullptr;
  ++counters_.iterations;
  if (has_budget_) [[unlikely]]
    note_memory_at_begin(iteration);
  interpreter_.begin(step, iteration, constants, runner);
}

inline void IterationActor::take_tokens(Batch* batch) {
  if (batch->kind == BatchKind::kTokens) {
    if (batch->constants != interpreter_.constants())
      interpreter_.take_constants(batch->constants);
    ++received_;
    if (batch->is_last) {
      expected_ = batch->count;
      exit_batches_ += batch->exits;
    }
    predecessor_done_ = received_ == expected_;
  }
  for (Token& token : batch->tokens)
    interpreter_.arrive(token.slot, token.is_dead, std::move(token.value));
  batch->tokens.clear_taken();
  pool().give(batch);
}

inline void IterationActor::take_child_end(const Batch& batch) {
  const uint32_t child = batch.ordinal;
  ++child_received_[child];
  if (batch.is_last) child_expected_[child] = batch.count;
  if (child_received_[child] != child_expected_[child]) return;
  interpreter_.end_child(child);
}

// The results of a call are the outputs of its node.
void IterationActor::take_return(Batch* batch) {
  const uint32_t child = batch->ordinal;
  const uint32_t node = plan_.calls[child]->node;
  for (Token& token : batch->tokens) interpreter_.take_result(node, token);
  take_child_end(*batch);
  if (!child_live(child)) {
    interpreter_.end_call(node);
    frame_.run->calls->give(std::exchange(children_[child], nullptr));
  }
  pool().give(batch);
}

inline void IterationActor::work(Runner& runner) {
  run_ready(runner);
  if (interpreter_.step()->cancelled()) return;
  if (out_.first_request != nullptr) post_requests(runner);
  if (out_.transfers != nullptr) post_transfers(runner);
  if (!out_.enter.empty()) post_enters(runner);
  if (interpreter_.is_ready()) [[unlikely]] {
    post_turn(runner);
  } else if (predecessor_done_ && !interpreter_.is_outstanding()) {
    retire(runner);
  } else {
    post_exits(runner);
    post_ahead(runner);
  }
}

inline void IterationActor::run_ready(Runner& runner) {
  while (interpreter_.run(runner)) [[unlikely]] {
      run_heavy(runner);
      if (runner.must_yield()) break;
    }
  if (interpreter_.is_watched()) [[unlikely]]
    interpreter_.note_pause();
}

// All cheap nodes have fired. First sends the batches for other actors. Then
// all heavy kernels but one go to the lanes, and that one runs here. None runs
// here if others wait for the worker, since runs take turns at the device. None
// runs on a lent thread, since its owner may need it in time.
void IterationActor::run_heavy(Runner& runner) {
  post_requests(runner);
  post_transfers(runner);
  post_enters(runner);
  post_exits(runner);
  post_ahead(runner);
  const bool stay = runner.may_stay();
  if (frame_.run->workers > 1 || !stay)
    interpreter_.give_heavy(stay ? 1 : 0, [&](KernelRequest& request) {
      runner.post(frame_.run->device, &request.batch);
    });
  // Other actors may run from here on: this handler needs a unit of its own.
  runner.renew(interpreter_.step());
  runner.flush();
  if (interpreter_.is_watched()) [[unlikely]]
    interpreter_.switch_to(runner);
  interpreter_.fire_heavy(runner);
}

// The time slice is over, but nodes are still ready here: the iteration goes on
// in the actor's next turn.
void IterationActor::post_turn(Runner& runner) {
  post_exits(runner);
  post_ahead(runner);
  if (std::exchange(turn_is_posted_, true)) return;
  turn_.step = interpreter_.step();
  runner.post(this, &turn_);
  runner.flush();
}

inline void IterationActor::retire(Runner& runner) {
  interpreter_.end();
  if (has_budget_) [[unlikely]]
    note_memory_at_end();
  if (successor_ != nullptr || out_.next != nullptr) {
    post_exits(runner);
    choose_successor(true);
    // If nothing was sent before, no iteration overlaps with this one.
    set_at_rest(sent_ == 0);
    busy_.store(false, std::memory_order_release);
    runner.post(successor_, take_next(true));
  } else {
    Batch* batch = std::exchange(out_.exit, nullptr);
    if (batch == nullptr) batch = interpreter_.take_batch(BatchKind::kExit);
    batch->is_last = true;
    batch->count = ++exit_batches_;
    busy_.store(false, std::memory_order_release);
    runner.post(frame_.actor, batch);
  }
  ++counters_.hops;
  if (!parked_.empty()) unpark(runner);
}

void IterationActor::unpark(Runner& runner) {
  std::vector<Batch*> batches;
  batches.swap(parked_);
  for (Batch* batch : batches) {
    runner.renew(batch->step);
    on_batch(batch, runner);
  }
}

// --- Sending ----------------------------------------------------------------

// The next batch for the successor; the last one carries the baton. Always
// inlined: each iteration runs it.
[[gnu::always_inline]] inline Batch* IterationActor::take_next(bool is_last) {
  Batch* batch = std::exchange(out_.next, nullptr);
  if (batch == nullptr) batch = interpreter_.take_batch(BatchKind::kTokens);
  batch->iteration = interpreter_.iteration() + 1;
  batch->is_last = is_last;
  batch->count = ++sent_;
  batch->exits = exit_batches_;
  batch->constants = interpreter_.constants();
  sent_constants_ = batch->constants;
  return batch;
}

void IterationActor::post_requests(Runner& runner) {
  if (out_.first_request == nullptr) return;
  ++counters_.hops;
  out_.first_request->taken = std::move(taken_);
  runner.post(frame_.run->device, &out_.first_request->batch);
  out_.first_request = out_.last_request = nullptr;
}

void IterationActor::post_transfers(Runner& runner) {
  Batch* batch = std::exchange(out_.transfers, nullptr);
  if (batch == nullptr) return;
  batch->sender = this;
  batch->tag = interpreter_.tag();
  ++counters_.hops;
  runner.post(frame_.run->rendezvous, batch);
}

void IterationActor::post_enters(Runner& runner) {
  for (size_t i = 0; i < out_.enter.size(); ++i) {
    Batch* batch = std::exchange(out_.enter[i], nullptr);
    if (batch == nullptr) continue;
    if (children_[i] == nullptr && is_call(uint32_t(i))) {
      children_[i] = frame_.run->calls->take(plan_.children[i], home_system());
    } else if (children_[i] == nullptr) {
      const FramePlan& child =
          frame_.run->plan->frames[size_t(plan_.children[i])];
      child_handles_[i] = spawn_actor<FrameActor, caf::lazy_init + caf::hidden>(
          home_system(), std::cref(*frame_.run), std::cref(child));
      children_[i] = actor_pointer<FrameActor>(child_handles_[i]);
    }
    if (!child_live(i)) {
      child_received_[i] = 0;
      child_expected_[i] = 0;
      interpreter_.begin_child(uint32_t(i));
    }
    batch->sender = this;
    batch->ordinal = uint32_t(i);
    ++counters_.hops;
    runner.post(children_[i], batch);
  }
}

void IterationActor::post_exits(Runner& runner) {
  if (out_.exit == nullptr) return;
  ++exit_batches_;
  ++counters_.hops;
  runner.post(frame_.actor, std::exchange(out_.exit, nullptr));
}

// Posts tokens with which the next iteration may begin before this one is
// retired.
void IterationActor::post_ahead(Runner& runner) {
  if (frame_.window == 1) return;
  const bool news =
      successor_ != nullptr && interpreter_.constants() != sent_constants_;
  if (out_.next == nullptr && !news) return;
  if (has_budget_ && lacks_memory_ahead()) [[unlikely]]
    return;
  choose_successor(false);
  runner.post_later(successor_, take_next(false));
}

inline void IterationActor::choose_successor(bool retiring) {
  if (successor_ != nullptr) return;
  // This is the newest iteration: only it reads and changes the ring.
  if (next_->busy()) [[unlikely]] {
    grow_ring();
  } else if (retiring && next_->next_ != this) [[unlikely]] {
    shrink_ring();
  }
  successor_ = next_;
  if (!retiring)
    counters_.max_in_flight =
        std::max<uint64_t>(counters_.max_in_flight, uint64_t(frame_.ring_size));
}

void IterationActor::grow_ring() {
  if (frame_.ring_size >= std::max(frame_.window, 2)) return;
  IterationActor* fresh = frame_.spare;
  if (fresh != nullptr) {
    frame_.spare = fresh->next_;
  } else {
    frame_.iterations.push_back(
        spawn_actor<IterationActor, caf::lazy_init + caf::hidden>(
            home_system(), std::ref(frame_)));
    fresh = actor_pointer<IterationActor>(frame_.iterations.back());
  }
  ++frame_.ring_size;
  fresh->next_ = next_;
  next_ = fresh;
}

// All others are idle, as this iteration is the only one in flight. Iteration 0
// begins on the first actor, which stays.
void IterationActor::shrink_ring() {
  IterationActor* const unused = next_;
  if (unused == actor_pointer<IterationActor>(frame_.iterations.front()))
    return;
  unused->release_values();
  next_ = std::exchange(unused->next_, frame_.spare);
  frame_.spare = unused;
  --frame_.ring_size;
}

// --- Life cycle -------------------------------------------------------------

void IterationActor::collect(Counters& counters) const {
  const Counters& firing = interpreter_.counters();
  // The count of fired nodes includes skipped ones.
  counters.fired += firing.fired - firing.dead;
  counters.dead += firing.dead;
  counters.iterations += counters_.iterations;
  counters.hops += counters_.hops;
  counters.offloaded += counters_.offloaded + firing.offloaded;
  counters.launched += firing.launched;
  counters.stale += counters_.stale;
  // One iteration is in flight even if none ever ran ahead.
  counters.max_in_flight =
      std::max<uint64_t>({counters.max_in_flight, counters_.max_in_flight, 1});
  for (size_t i = 0; i < children_.size(); ++i)
    if (children_[i] != nullptr && !is_call(uint32_t(i)))
      children_[i]->collect(counters);
}

void IterationActor::release_values() { interpreter_.release_values(); }

void IterationActor::reset() {
  for (Batch* batch : parked_) BatchStore::free(batch);
  parked_.clear();
  interpreter_.reset();
  turn_is_posted_ = false;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i] == nullptr) continue;
    if (is_call(uint32_t(i))) {
      children_[i] = nullptr;  // CallFrames resets it
    } else {
      children_[i]->reset();
    }
  }
  busy_.store(false, std::memory_order_release);
}

void IterationActor::on_stop() {
  for (caf::actor& child : child_handles_)
    if (child) caf::anon_send(child, Stop{});
}

}  // namespace tagflow::actors
