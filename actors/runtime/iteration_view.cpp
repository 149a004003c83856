#include "actors/runtime/iteration_view.h"

#include "actors/runtime/interpreter.h"
#include "actors/runtime/iteration_state.h"

namespace tagflow::actors {

size_t IterationView::num_nodes() const { return plan_.nodes.size(); }

const graph::Node& IterationView::node(size_t i) const {
  return *plan_.nodes[i].node;
}

uint32_t IterationView::pending(size_t i) const {
  return state_.pending(uint32_t(i)) & IterationState::kCount;
}

bool IterationView::has_fired(size_t i) const {
  return (state_.pending(uint32_t(i)) & IterationState::kFired) != 0;
}

uint32_t IterationView::taken(size_t i) const {
  const uint32_t word = state_.pending(uint32_t(i));
  if (plan_.nodes[i].kind == NodeKind::kSwitchN)
    return word & IterationState::kCount;
  return (word & IterationState::kTaken) != 0 ? 1 : 0;
}

std::span<const uint32_t> IterationView::ready() const {
  return state_.ready();
}

size_t IterationView::running() const {
  return interpreter_ == nullptr ? 0 : interpreter_->num_running();
}

size_t IterationView::children() const {
  return interpreter_ == nullptr ? 0 : interpreter_->num_children();
}

}  // namespace tagflow::actors
