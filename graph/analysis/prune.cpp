#include "graph/analysis/prune.h"

#include <algorithm>
#include <unordered_set>

namespace tagflow::graph {
namespace {

bool is_placeholder(const Node& node) {
  return node.op() == "Placeholder" || node.op() == "PlaceholderV2" ||
         node.op() == "PlaceholderWithDefault";
}

// Calls found(node) once for each node that is needed.
template <class Found>
NodeSet walk(std::span<const Endpoint> fetches, std::span<Node* const> targets,
             std::span<const Endpoint> feeds, const Found& found) {
  const std::unordered_set<Endpoint, EndpointHash> fed(feeds.begin(),
                                                       feeds.end());
  NodeSet needed;
  std::vector<const Node*> open;
  auto need = [&](Node* node) {
    if (!needed.insert(*node)) return;
    open.push_back(node);
    found(node);
  };
  auto need_output = [&](const Endpoint& output) {
    if (output.node != nullptr && !fed.contains(output)) need(output.node);
  };
  for (const Endpoint& fetch : fetches) need_output(fetch);
  for (Node* target : targets) need(target);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Endpoint& input : node->inputs()) need_output(input);
    for (Node* input : node->control_inputs())
      if (!is_placeholder(*input) || !fed.contains({input, 0})) need(input);
  }
  return needed;
}

}  // namespace

NodeSet prune(const Graph& /*graph*/, std::span<const Endpoint> fetches,
              std::span<Node* const> targets, std::span<const Endpoint> feeds) {
  return walk(fetches, targets, feeds, [](const Node*) {});
}

std::vector<Node*> needed_nodes(const Graph& graph,
                                std::span<const Endpoint> fetches,
                                std::span<Node* const> targets,
                                std::span<const Endpoint> feeds) {
  std::vector<Node*> nodes;
  const NodeSet needed =
      walk(fetches, targets, feeds, [&](Node* node) { nodes.push_back(node); });
  // Scanning all nodes costs as much as sorting this fraction of them.
  constexpr size_t kMuch = 16;
  if (nodes.size() < graph.size() / kMuch) {
    std::ranges::sort(nodes, {}, &Node::id);
    return nodes;
  }
  nodes.clear();
  for (Node* node : graph.nodes())
    if (needed.contains(*node)) nodes.push_back(node);
  return nodes;
}

}  // namespace tagflow::graph
