#include "graph/topology.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace tagflow::graph {
namespace {

// How many nodes of a cycle a message names.
constexpr size_t kShownCycle = 12;

// Names a cycle among those not `placed`, each of which waits for another.
Status cycle_error(const std::vector<std::vector<size_t>>& inputs,
                   const std::vector<bool>& placed,
                   const std::function<std::string_view(size_t)>& name) {
  auto at = size_t(std::ranges::find(placed, false) - placed.begin());
  // Walking back must meet one of them twice.
  std::vector<size_t> path;
  std::vector<bool> on_path(placed.size());
  while (!on_path[at]) {
    on_path[at] = true;
    path.push_back(at);
    at = *std::ranges::find_if(inputs[at],
                               [&](size_t input) { return !placed[input]; });
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  std::ranges::reverse(path);
  std::string text(name(path.back()));
  for (size_t n = 0; n < path.size(); ++n) {
    if (n == kShownCycle) {
      text += fmt::format(" -> ... ({} nodes)", path.size());
      break;
    }
    text += fmt::format(" -> {}", name(path[n]));
  }
  return invalid_argument(
      "[graph] the cycle {} does not go through a NextIteration into a Merge",
      text);
}

// Most graphs are, and are spared the sorting.
bool is_in_order(const std::vector<std::vector<size_t>>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t input : inputs[i])
      if (input >= i) return false;
  return true;
}

bool is_in_order(const Graph& graph, const std::vector<size_t>& position) {
  for (const Node* node : graph.nodes()) {
    const size_t own = position[node->id()];
    for (size_t k = 0; k < node->inputs().size(); ++k) {
      const Node* source = node->inputs()[k].node;
      if (source != nullptr && position[source->id()] >= own &&
          !is_back_edge(*node, k))
        return false;
    }
    for (const Node* source : node->control_inputs())
      if (position[source->id()] >= own) return false;
  }
  return true;
}

}  // namespace

bool is_back_edge(const Node& node, size_t index) {
  const Node* source = node.inputs()[index].node;
  return node.is_merge() && source != nullptr && source->is_next_iteration();
}

Result<std::vector<size_t>> topological_order(
    const std::vector<std::vector<size_t>>& inputs,
    const std::function<std::string_view(size_t)>& name) {
  const size_t count = inputs.size();
  std::vector<size_t> order;
  if (is_in_order(inputs)) {
    order.resize(count);
    std::iota(order.begin(), order.end(), size_t(0));
    return order;
  }
  std::vector<size_t> pending(count);
  std::vector<std::vector<size_t>> consumers(count);
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    pending[i] = inputs[i].size();
    if (pending[i] == 0) ready.push(i);
    for (size_t input : inputs[i]) consumers[input].push_back(i);
  }
  order.reserve(count);
  std::vector<bool> placed(count);
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    placed[i] = true;
    for (size_t consumer : consumers[i])
      if (--pending[consumer] == 0) ready.push(consumer);
  }
  if (order.size() < count) return cycle_error(inputs, placed, name);
  return order;
}

Result<std::vector<Node*>> topological_order(const Graph& graph) {
  const auto nodes = graph.nodes();
  NodeId last = 0;
  for (const Node* node : nodes) last = std::max(last, node->id());
  std::vector<size_t> position(size_t(last) + 1);
  for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i]->id()] = i;
  if (is_in_order(graph, position))
    return std::vector<Node*>(nodes.begin(), nodes.end());

  std::vector<std::vector<size_t>> inputs(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    for (size_t k = 0; k < node.inputs().size(); ++k) {
      const Node* source = node.inputs()[k].node;
      if (source != nullptr && !is_back_edge(node, k))
        inputs[i].push_back(position[source->id()]);
    }
    for (const Node* source : node.control_inputs())
      inputs[i].push_back(position[source->id()]);
  }
  TAGFLOW_ASSIGN(const auto indices, topological_order(inputs, [&](size_t i) {
                   return std::string_view(nodes[i]->name());
                 }));
  std::vector<Node*> order;
  order.reserve(nodes.size());
  for (size_t i : indices) order.push_back(nodes[i]);
  return order;
}

}  // namespace tagflow::graph
