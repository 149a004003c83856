// The inner loop of a run that is observed or traced.
#include <algorithm>

#include "actors/runtime/iteration_view.h"
#include "actors/runtime/token_path.h"
#include "actors/watch/observer.h"

namespace tagflow::actors {

size_t Interpreter::num_running() const {
  const auto live = std::ranges::count_if(
      child_live_, [](uint8_t is_live) { return is_live != 0; });
  return size_t(outstanding_ - int(live)) + heavy_.size() - wide_.size();
}

size_t Interpreter::num_children() const {
  size_t count = 0;
  for (size_t child = 0; child < child_live_.size(); ++child)
    if (child_live_[child] != 0 || out_.enter[child] != nullptr) ++count;
  return count;
}

void Interpreter::fire_observed(uint32_t node) {
  uint32_t& word = state_.pending(node);
  const bool is_dead = (word & IterationState::kDead) != 0;
  word |= IterationState::kFired;
  observer_->on_fire(location(), *nodes_[node].node, is_dead);
  fire_other(node, is_dead);
  observer_->on_settle(location(), IterationView(plan_, state_, this));
}

// Returns whether the clock must be read afterwards: see Note [Trace words].
[[gnu::always_inline]] inline bool Interpreter::trace_firing(
    uint32_t node, bool clock_is_due) {
  const NodeItem& item = nodes_[node];
  const bool is_dead = (state_.pending(node) & IterationState::kDead) != 0;
  const bool may_be_long = !is_dead && item.kind == NodeKind::kKernel &&
                           (item.scalar == nullptr ||
                            state_.slot(item.first_slot).buffer() != nullptr);
  if (may_be_long || clock_is_due) trace_->clock();
  trace_->add(is_dead ? TraceBuffer::kSkip : TraceBuffer::kNode, node);
  return may_be_long;
}

bool Interpreter::run_traced(Runner& runner) {
  bool clock_is_due = false;
  do {
    fire_ready(runner, [&](uint32_t node) {
      clock_is_due = trace_firing(node, clock_is_due);
      fire(node);
    });
    if (std::exchange(clock_is_due, false)) trace_->clock();
  } while (goes_on(runner));
  return must_run_heavy();
}

// Checks the abort flag after each firing, so that an observer sees nothing
// after an error.
bool Interpreter::run_observed(Runner& runner) {
  do {
    observer_->on_settle(location(), IterationView(plan_, state_, this));
    bool clock_is_due = false;
    while (state_.has_ready() && !step_->cancelled()) {
      const uint32_t node = state_.pop_ready();
      if (trace_ != nullptr) clock_is_due = trace_firing(node, clock_is_due);
      fire_observed(node);
      ++counters_.fired;
      if (++fired_ % kFiringsPerCheck == 0) {
        step_->check_deadline();
        if (runner.must_yield_between()) break;
      }
    }
    if (clock_is_due) trace_->clock();
  } while (goes_on(runner));
  return must_run_heavy();
}

void Interpreter::switch_to(Runner& runner) {
  if (frame_.trace == nullptr) return;
  trace_ = &runner.trace(*frame_.trace);
  trace_->switch_to(TraceBuffer::kActivity, frame_.trace_number, iteration_);
}

}  // namespace tagflow::actors
