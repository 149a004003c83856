// The part of PlanBuilder that turns Consts into constant slots of their
// readers: which Consts can be folded, and what their readers then wait for.
#include <algorithm>

#include "actors/plan/plan_builder.h"

namespace tagflow::actors {

using graph::Endpoint;
using graph::Node;

namespace {

// A folded Const waits for at most so many nodes.
constexpr size_t kMaxWaits = 16;

}  // namespace

// The Const that has this value, once the nodes that the Const waits for have
// run; null if there is none.
Node* PlanBuilder::constant_of(Endpoint endpoint) const {
  if (!options_.compile_edges) return nullptr;
  bool entered = false;
  for (;;) {
    endpoint = through_aliases(endpoint);
    Node* node = endpoint.node;
    if (is_fed(endpoint)) return nullptr;
    // A node cannot wait for nodes of another frame.
    if (node->is_const())
      return entered && !node->control_inputs().empty() ? nullptr : node;
    // If the frame has no other Enter, this one must start it.
    if (!node->is_constant_enter() || !node->control_inputs().empty() ||
        !has_start_[size_t(frames_.output_of(*node))])
      return nullptr;
    entered = true;
    endpoint = node->inputs()[0];
  }
}

const PlanBuilder::Waits& PlanBuilder::waits_of(Node* constant) {
  // Constants may wait for other constants, in long chains.
  std::vector<Node*> open = {constant};
  while (!open.empty()) {
    Node* const node = open.back();
    if (waits_.contains(node->id())) {
      open.pop_back();
      continue;
    }
    const size_t others = open.size();
    Waits waits;
    const auto add = [&](Node* source) {
      if (std::ranges::find(waits.nodes, source) == waits.nodes.end())
        waits.nodes.push_back(source);
    };
    for (Node* control : node->control_inputs()) {
      if (waits.nodes.size() > kMaxWaits) break;
      Node* const source =
          control->num_outputs() > 0 ? constant_of({control, 0}) : nullptr;
      const auto known =
          source != nullptr ? waits_.find(source->id()) : waits_.end();
      if (source == nullptr) {
        add(control);
      } else if (source->control_inputs().empty()) {
        continue;
      } else if (known == waits_.end()) {
        open.push_back(source);
      } else if (known->second.too_many) {
        add(control);
      } else {
        for (Node* wait : known->second.nodes) add(wait);
      }
    }
    if (open.size() > others) continue;
    waits.too_many = waits.nodes.size() > kMaxWaits;
    waits_[node->id()] = std::move(waits);
    open.pop_back();
  }
  return waits_.at(constant->id());
}

std::optional<PlanBuilder::Folded> PlanBuilder::fold(const Endpoint& endpoint) {
  Node* const constant = constant_of(endpoint);
  if (constant == nullptr) return {};
  std::span<Node* const> waits;
  if (!constant->control_inputs().empty()) {
    const Waits& all = waits_of(constant);
    if (all.too_many) return {};
    waits = {all.nodes.data(), all.nodes.size()};
  }
  Result<Tensor> value = constant->attr<Tensor>("value");
  if (!value.ok()) return {};
  return Folded{std::move(value).value(), waits};
}

}  // namespace tagflow::actors
