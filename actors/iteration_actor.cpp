#include "actors/iteration_actor.h"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/call_frames.h"
#include "actors/frame_actor.h"
#include "actors/observer.h"
#include "actors/rendezvous.h"
#include "actors/token_path.h"

// Here is the protocol. The way of a token is in token_path.h, the firing of
// nodes in iteration_firing.cpp, kernels that run elsewhere are in
// iteration_kernels.cpp, runs that are observed or traced in
// iteration_watched.cpp, what bounds the memory of iterations in flight in
// iteration_memory.cpp.

namespace tagflow::actors {

IterationActor::IterationActor(caf::actor_config& config, FrameInstance& frame)
    : EngineActor(config, frame.run->policy, frame.run->batches),
      frame_(frame),
      plan_(*frame.plan),
      nodes_(plan_.nodes.data()),
      ports_(plan_.ports.data()),
      edges_(plan_.edges.data()),
      arrivals_(plan_.arrivals.data()),
      has_budget_(frame.run->memory != nullptr),
      state_(*frame.plan),
      next_(this),
      out_enter_(plan_.children.size()),
      children_(plan_.children.size()),
      child_handles_(plan_.children.size()),
      child_live_(plan_.children.size()),
      child_received_(plan_.children.size()),
      child_expected_(plan_.children.size()),
      outputs_(plan_.max_outputs),
      constant_at_(plan_.constant_edges.empty() ? 0 : plan_.arrivals.size()) {
  turn_.kind = BatchKind::kIdle;
}

// --- Handling a batch -------------------------------------------------------

void IterationActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->step->cancelled()) return drop(batch);
  if (batch->kind == BatchKind::kTokens) [[likely]] {
    if (!on_tokens(batch, runner)) return;
  } else if (!on_other(batch, runner)) {
    return;
  }
  work(runner);
}

// Takes tokens of the predecessor or the frame. False where the batch is stale,
// or has to wait for its iteration.
inline bool IterationActor::on_tokens(Batch* batch, Runner& runner) {
  if (batch->generation != frame_.generation) [[unlikely]] {
    ++counters_.stale;
    pool().give(batch);
    return false;
  }
  if (!busy()) {
    step_ = batch->step;
    begin(batch->iteration, batch->constants, runner);
  } else if (batch->iteration != iteration_) {
    parked_.push_back(batch);
    return false;
  } else if (watched_) [[unlikely]] {
    trace_turn(runner);
  }
  take_tokens(batch);
  return true;
}

// Takes an answer, of a child frame, a kernel or a Recv, or this actor's next
// turn. False where there is nothing to do, or no more.
bool IterationActor::on_other(Batch* batch, Runner& runner) {
  if (batch->kind == BatchKind::kIdle) {
    turn_is_posted_ = false;
    if (!busy()) return false;
  }
  if (watched_) [[unlikely]]
    trace_turn(runner);
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
      take_received(batch);
      break;
    case BatchKind::kIdle:  // noted above
      break;
    default:
      pool().give(batch);
      return false;
  }
  return true;
}

// Takes it, and does what follows.
void IterationActor::take_answer(KernelRequest& request, Runner& runner) {
  // Nothing that is thrown keeps others from their turn.
  struct Ending {
    ~Ending() { turn.end(); }
    TakingTurn& turn;
  } const ending{taken_};
  taken_ = std::move(request.taking);
  take_kernel(&request, runner);
  work(runner);
}

// Of a step that was cut short. What is kept is for its message: a request
// that is answered now was not in time.
void IterationActor::drop(Batch* batch) {
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
    iteration_ = batch->iteration;
    generation_ = 0;
    busy_.store(true, std::memory_order_relaxed);
  }
  pool().give(batch);
}

// The thread's next words in the trace are about this iteration.
void IterationActor::trace_turn(Runner& runner) {
  if (frame_.trace == nullptr) return;
  trace_ = &runner.trace(*frame_.trace);
  trace_->turn_to(TraceBuffer::kActivity, frame_.trace_number, iteration_);
}

inline void IterationActor::begin(int64_t iteration, const ConstSet* constants,
                                  Runner& runner) {
  busy_.store(true, std::memory_order_relaxed);
  set_at_rest(false);
  observer_ = frame_.observer;
  trace_ = nullptr;
  watched_ = frame_.watched;
  iteration_ = iteration;
  generation_ = frame_.generation;
  tag_ = frame_.tag;
  tag_.iteration = iteration;
  predecessor_done_ = false;
  received_ = 0;
  expected_ = 0;
  sent_ = 0;
  exits_ = 0;
  outstanding_ = 0;
  fired_ = 0;
  successor_ = nullptr;
  constants_ = constants;
  ++counters_.iterations;
  if (has_budget_) [[unlikely]]
    note_memory_at_begin();
  if (watched_) [[unlikely]] {
    if (observer_ != nullptr) observer_->on_iteration_start(place());
    trace_turn(runner);
  }
  const bool steady = constants != nullptr && constants->steady;
  if (iteration == 0) {
    state_.start(steady ? plan_.steady_first : plan_.first);
  } else {
    state_.start(steady ? plan_.steady_later : plan_.later);
  }
  if (constants == nullptr) return;
  if (!steady) {
    for (const Token& token : constants->tokens) arrive_constant(token);
    return;
  }
  if (loaded_epoch_ != constants->epoch) load_constants();
  for (const ConstantEdge& dynamic : plan_.constant_edges)
    send_copy(dynamic.edge, constant_at_[dynamic.arrival]->value);
}

void IterationActor::load_constants() {
  for (const Token& token : constants_->tokens) {
    const PortItem& port = arrivals_[token.arrival].edges;
    for (uint32_t i = 0; i < port.count; ++i) {
      const EdgeItem& edge = edges_[port.begin + i];
      if (edge.kind == EdgeKind::kInput) state_.slot(edge.slot) = token.value;
    }
    if (!constant_at_.empty()) constant_at_[token.arrival] = &token;
    holds_values_ = holds_values_ || token.value.buffer() != nullptr;
  }
  loaded_epoch_ = constants_->epoch;
}

inline void IterationActor::take_child_end(const Batch& batch) {
  const uint32_t child = batch.ordinal;
  ++child_received_[child];
  if (batch.final) child_expected_[child] = batch.count;
  if (child_received_[child] != child_expected_[child]) return;
  child_live_[child] = 0;
  --outstanding_;
  if (!plan_.child_ends.empty()) send_control(plan_.child_ends[child]);
}

// What a call gives back are the outputs of its node.
void IterationActor::take_return(Batch* batch) {
  const uint32_t child = batch->ordinal;
  const NodeItem& item = nodes_[plan_.calls[child]->node];
  for (Token& token : batch->tokens) {
    if (observer_ != nullptr)
      observer_->on_arrive(place(), *item.node, token.value, token.is_dead);
    if (trace_ != nullptr)
      trace_->add(TraceBuffer::kResult, plan_.calls[child]->node);
    const PortItem& port = ports_[item.first_port + token.arrival];
    if (token.is_dead) {
      send_dead(port);
    } else {
      send_port(port, std::move(token.value));
    }
  }
  take_child_end(*batch);
  if (!child_live_[child]) {
    send_control(ports_[item.first_port + item.num_outputs]);
    frame_.run->calls->give(std::exchange(children_[child], nullptr));
  }
  pool().give(batch);
}

inline void IterationActor::work(Runner& runner) {
  run_ready(runner);
  if (step_->cancelled()) return;
  if (first_request_ != nullptr) post_requests(runner);
  if (out_transfers_ != nullptr) post_transfers(runner);
  if (!out_enter_.empty()) post_enters(runner);
  if (state_.has_ready() || !heavy_.empty()) [[unlikely]] {
    post_turn(runner);
  } else if (predecessor_done_ && outstanding_ == 0) {
    retire(runner);
  } else {
    post_exits(runner);
    post_ahead(runner);
  }
}

// The time slice is over, but not what is ready here: it goes on when the
// actor's turn comes again.
void IterationActor::post_turn(Runner& runner) {
  post_exits(runner);
  post_ahead(runner);
  if (std::exchange(turn_is_posted_, true)) return;
  turn_.step = step_;
  runner.post(this, &turn_);
  runner.flush();
}

inline void IterationActor::retire(Runner& runner) {
  if (fired_ != plan_.nodes.size()) holds_values_ = true;
  if (observer_ != nullptr) observer_->on_iteration_end(place());
  if (has_budget_) [[unlikely]]
    note_memory_at_end();
  if (successor_ != nullptr || out_next_ != nullptr) {
    post_exits(runner);
    choose_successor(true);
    // Where nothing was sent before, no iteration overlaps with this one.
    set_at_rest(sent_ == 0);
    busy_.store(false, std::memory_order_release);
    runner.post(successor_, take_next(true));
  } else {
    Batch* batch = std::exchange(out_exit_, nullptr);
    if (batch == nullptr) batch = take_batch(BatchKind::kExit);
    batch->final = true;
    batch->count = ++exits_;
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

Batch* IterationActor::take_batch(BatchKind kind) {
  Batch* batch = pool().take(kind);
  batch->step = step_;
  batch->generation = frame_.generation;
  batch->iteration = iteration_;
  return batch;
}

// The batch that goes to the successor next; a final one hands the baton over.
// Inlined by force: it is a part of each trip.
[[gnu::always_inline]] inline Batch* IterationActor::take_next(bool final) {
  Batch* batch = std::exchange(out_next_, nullptr);
  if (batch == nullptr) batch = take_batch(BatchKind::kTokens);
  batch->iteration = iteration_ + 1;
  batch->final = final;
  batch->count = ++sent_;
  batch->exits = exits_;
  batch->constants = constants_;
  sent_constants_ = constants_;
  return batch;
}

void IterationActor::post_transfers(Runner& runner) {
  Batch* batch = std::exchange(out_transfers_, nullptr);
  if (batch == nullptr) return;
  batch->sender = this;
  batch->tag = tag_;
  ++counters_.hops;
  runner.post(frame_.run->rendezvous, batch);
}

void IterationActor::post_enters(Runner& runner) {
  for (size_t i = 0; i < out_enter_.size(); ++i) {
    Batch* batch = std::exchange(out_enter_[i], nullptr);
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
    if (!child_live_[i]) {
      child_live_[i] = 1;
      child_received_[i] = 0;
      child_expected_[i] = 0;
      ++outstanding_;
    }
    batch->sender = this;
    batch->ordinal = uint32_t(i);
    ++counters_.hops;
    runner.post(children_[i], batch);
  }
}

void IterationActor::post_exits(Runner& runner) {
  if (out_exit_ == nullptr) return;
  ++exits_;
  ++counters_.hops;
  runner.post(frame_.actor, std::exchange(out_exit_, nullptr));
}

// Posts what the next iteration may begin with before this one is retired.
void IterationActor::post_ahead(Runner& runner) {
  if (frame_.window == 1) return;
  const bool news = successor_ != nullptr && constants_ != sent_constants_;
  if (out_next_ == nullptr && !news) return;
  if (has_budget_ && lacks_memory_ahead()) [[unlikely]]
    return;
  choose_successor(false);
  runner.post_later(successor_, take_next(false));
}

inline void IterationActor::choose_successor(bool retiring) {
  if (successor_ != nullptr) return;
  // This is the newest iteration: the ring is its own to read and to change.
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
  // The actor's own count of what fired includes what was skipped.
  counters.fired += counters_.fired - counters_.dead;
  counters.dead += counters_.dead;
  counters.iterations += counters_.iterations;
  counters.hops += counters_.hops;
  counters.offloaded += counters_.offloaded;
  counters.launched += counters_.launched;
  counters.stale += counters_.stale;
  // One is in flight even where none ever ran ahead.
  counters.max_in_flight =
      std::max<uint64_t>({counters.max_in_flight, counters_.max_in_flight, 1});
  for (size_t i = 0; i < children_.size(); ++i)
    if (children_[i] != nullptr && !is_call(uint32_t(i)))
      children_[i]->collect(counters);
}

bool IterationActor::awaits(uint32_t node) const {
  if (nodes_[node].kind == NodeKind::kCall)
    return child_live_[nodes_[node].ordinal] != 0;
  if (nodes_[node].kind == NodeKind::kRecv)
    return has_fired(node) &&
           (state_.pending(node) & IterationState::kTaken) == 0;
  return (state_.pending(node) & IterationState::kAsked) != 0;
}

std::string_view IterationActor::reason_at_stop(uint32_t node) const {
  for (const auto& request : requests_)
    if (request->node == node && !request->wait.at_stop.empty())
      return request->wait.at_stop;
  return {};
}

void IterationActor::release_values() {
  if (!holds_values_) return;
  state_.release_values();
  holds_values_ = false;
  loaded_epoch_ = 0;
}

void IterationActor::drop_batches() {
  BatchStore::free(std::exchange(out_next_, nullptr));
  BatchStore::free(std::exchange(out_exit_, nullptr));
  BatchStore::free(std::exchange(out_transfers_, nullptr));
  for (Batch*& batch : out_enter_)
    BatchStore::free(std::exchange(batch, nullptr));
  for (Batch* batch : parked_) BatchStore::free(batch);
  parked_.clear();
}

void IterationActor::reset() {
  drop_batches();
  holds_values_ = true;
  release_values();
  state_.forget();
  for (Tensor& output : outputs_) output.reset();
  passing_.reset();
  heavy_.clear();
  wide_.clear();
  turn_is_posted_ = false;
  first_request_ = last_request_ = nullptr;
  free_requests_.clear();
  for (const auto& request : requests_) give_request(request.get());
  std::fill(child_live_.begin(), child_live_.end(), uint8_t(0));
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i] == nullptr) continue;
    if (is_call(uint32_t(i))) {
      children_[i] = nullptr;  // CallFrames resets it
    } else {
      children_[i]->reset();
    }
  }
  outstanding_ = 0;
  busy_.store(false, std::memory_order_release);
}

void IterationActor::on_stop() {
  for (caf::actor& child : child_handles_)
    if (child) caf::anon_send(child, Stop{});
}

}  // namespace tagflow::actors
