// The common path of a token: from an arrival, or the output of a node, along
// its edges to the nodes that it makes ready, and their firing. These members
// of Interpreter are always inlined: otherwise the compiler calls functions of
// a few instructions each, which makes every token 50 % more expensive. Only
// the sources of Interpreter and IterationActor may include this file.
#pragma once

#include "actors/runtime/interpreter.h"
#include "actors/runtime/runner.h"
#include "actors/runtime/step.h"

namespace tagflow::actors {

// How many nodes fire between two checks of the abort flag and the deadline.
// Runner::must_yield_between() reads the clock less often if they are quick.
inline constexpr uint32_t kFiringsPerCheck = 256;
// How many edges of an output are served between two checks.
inline constexpr uint32_t kEdgesPerCheck = 4096;

// --- Edges ------------------------------------------------------------------

// Adds a live token for the edge's arrival to the batch that will carry it.
[[gnu::always_inline]] inline Token& Interpreter::add_token(
    Batch*& batch, BatchKind kind, const EdgeItem& edge) {
  if (batch == nullptr) batch = take_batch(kind);
  return batch->tokens.add(edge.target);
}

// Handles the most frequent edges first; send_elsewhere() handles the others.
[[gnu::always_inline]] inline void Interpreter::send_edge(const EdgeItem& edge,
                                                          Tensor&& value) {
  if (edge.kind == EdgeKind::kInput) [[likely]] {
    state_.slot(edge.slot).take(value);
    state_.arrive(edge.target);
  } else if (edge.kind == EdgeKind::kNext) {
    add_token(out_.next, BatchKind::kTokens, edge).value.take(value);
  } else if (is_control(edge.kind)) {
    value.reset();
    state_.arrive(edge.target);
  } else {
    send_elsewhere(edge, std::move(value));
  }
}

[[gnu::always_inline]] inline void Interpreter::send_port(const PortItem& port,
                                                          Tensor&& value) {
  if (port.count == 1) [[likely]] {
    send_edge(port.first, std::move(value));
  } else if (port.count > 1) {
    send_to_many(port, std::move(value));
  } else {
    value.reset();
  }
}

// A dead NextIteration starts nothing. A dead Exit need not be sent: at its
// end, the frame knows which Exits were never live.
[[gnu::always_inline]] inline void Interpreter::send_dead_edge(
    const EdgeItem& edge) {
  if (edge.kind == EdgeKind::kInput) [[likely]] {
    state_.arrive_dead(edge.target);
  } else if (edge.kind != EdgeKind::kNext && edge.kind != EdgeKind::kExit) {
    send_dead_elsewhere(edge);
  }
}

[[gnu::always_inline]] inline void Interpreter::send_dead(
    const PortItem& port) {
  if (port.count == 0) return;
  send_dead_edge(port.first);
  if (port.count > 1) send_dead_to_many(port);
}

inline void Interpreter::send_control(const PortItem& port) {
  if (port.count == 0) return;
  state_.arrive(port.first.target);
  if (port.count > 1) send_control_to_many(port);
}

[[gnu::always_inline]] inline void Interpreter::arrive(uint32_t arrival,
                                                       bool is_dead,
                                                       Tensor&& value) {
  const ArrivalItem& item = arrivals_[arrival];
  if (watched_) [[unlikely]] {
    if (trace_ != nullptr) trace_->add(TraceBuffer::kArrival, arrival);
    if (observer_ != nullptr)
      observer_->on_arrive(location(), *item.node, value, is_dead);
  }
  if (is_dead) [[unlikely]] {
    send_dead(item.edges);
  } else {
    send_port(item.edges, std::move(value));
  }
}

// --- Inputs -----------------------------------------------------------------

inline void Interpreter::drop_input(const NodeItem& item, uint32_t i) {
  Tensor& slot = state_.slot(item.first_slot + i);
  if (slot.buffer() == nullptr) return;
  if (item.has_constant_inputs && plan_.sticky[item.first_slot + i]) return;
  slot.reset();
}

inline void Interpreter::consume_inputs(const NodeItem& item) {
  for (uint32_t i = 0; i < item.num_inputs; ++i) drop_input(item, i);
}

inline Tensor Interpreter::take_input(const NodeItem& item, uint32_t i) {
  Tensor& slot = state_.slot(item.first_slot + i);
  if (item.has_constant_inputs && plan_.sticky[item.first_slot + i])
    return slot;
  return std::move(slot);
}

// --- Nodes ------------------------------------------------------------------

[[gnu::always_inline]] inline void Interpreter::skip(const NodeItem& item) {
  ++counters_.dead;
  if (item.may_hold_when_dead) consume_inputs(item);
  send_dead(item.edges);
}

// Forwards the first input through `port`; moves it out of its slot unless the
// slot is sticky.
[[gnu::always_inline]] inline void Interpreter::pass_on(const NodeItem& item,
                                                        const PortItem& port,
                                                        Observed observed) {
  Tensor& value = state_.slot(item.first_slot);
  if (observed == Observed::kYes)
    observer_->on_fired(location(), *item.node, {&value, 1});
  if (item.has_constant_inputs && plan_.sticky[item.first_slot]) [[unlikely]] {
    passing_ = value;
    send_port(port, std::move(passing_));
  } else {
    send_port(port, std::move(value));
  }
}

// A kernel on scalars that are held in their tokens need not allocate, share or
// release memory. False if the inputs are not of this kind.
[[gnu::always_inline]] inline bool Interpreter::fire_scalar(
    const NodeItem& item) {
  if (!item.scalar(state_.slots() + item.first_slot, passing_)) return false;
  send_port(item.edges, std::move(passing_));
  return true;
}

[[gnu::always_inline]] inline void Interpreter::fire_switch(uint32_t node,
                                                            Observed observed) {
  const NodeItem& item = nodes_[node];
  const Tensor& predicate = state_.slot(item.first_slot + 1);
  bool taken;
  if (predicate.is_inline_scalar(DataType::kBool)) [[likely]] {
    taken = *predicate.inline_data<bool>();
  } else {
    const std::optional<bool> read = read_predicate(node);
    if (!read) return;
    taken = *read;
  }
  if (taken) state_.pending(node) |= IterationState::kTaken;
  const PortItem* const ports = ports_ + item.first_port;
  pass_on(item, ports[taken ? 1 : 0], observed);
  send_dead(ports[taken ? 0 : 1]);
  send_control(ports[2]);
}

// Handles the most frequent nodes first; fire_other() handles the others.
[[gnu::always_inline]] inline void Interpreter::fire(uint32_t node) {
  const NodeItem& item = nodes_[node];
  uint32_t& word = state_.pending(node);
  const uint32_t facts = std::exchange(word, word | IterationState::kFired);
  if (facts & IterationState::kDead) {
    if (item.kind < NodeKind::kSend) return skip(item);
  } else if (item.kind == NodeKind::kKernel) {
    if (item.scalar != nullptr && fire_scalar(item)) return;
  } else if (item.kind == NodeKind::kSwitch) {
    return fire_switch(node, Observed::kNo);
  } else if (item.kind == NodeKind::kForward) {
    return pass_on(item, item.edges, Observed::kNo);
  }
  fire_other(node, (facts & IterationState::kDead) != 0);
}

template <class F>
[[gnu::always_inline]] inline void Interpreter::fire_ready(Runner& runner,
                                                           const F& fire_one) {
  uint32_t fired = 0;
  while (state_.has_ready()) {
    fire_one(state_.pop_ready());
    if (++fired % kFiringsPerCheck == 0) {
      step_->check_deadline();
      if (step_->must_rest() || runner.must_yield_between()) break;
    }
  }
  fired_ += fired;
  counters_.fired += fired;
}

// --- The iteration ----------------------------------------------------------

inline bool Interpreter::must_run_heavy() const {
  return !heavy_.empty() && wide_.empty() && !state_.has_ready() &&
         !step_->cancelled();
}

inline Batch* Interpreter::take_batch(BatchKind kind) {
  Batch* batch = pool_.take(kind);
  batch->step = step_;
  batch->generation = frame_.generation;
  batch->iteration = iteration_;
  return batch;
}

inline void Interpreter::begin(Step* step, int64_t iteration,
                               const ConstSet* constants, Runner& runner) {
  step_ = step;
  observer_ = frame_.observer;
  trace_ = nullptr;
  watched_ = frame_.watched;
  iteration_ = iteration;
  tag_ = frame_.tag;
  tag_.iteration = iteration;
  outstanding_ = 0;
  fired_ = 0;
  constants_ = constants;
  if (watched_) [[unlikely]] {
    if (observer_ != nullptr) observer_->on_iteration_start(location());
    switch_to(runner);
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

}  // namespace tagflow::actors
