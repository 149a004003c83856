#include "graph/prune.h"

#include <algorithm>
#include <unordered_set>

namespace tagflow::graph {
namespace {

bool is_placeholder(const Node& node) {
  return node.op() == "Placeholder" || node.op() == "PlaceholderV2" ||
         node.op() == "PlaceholderWithDefault";
}

}  // namespace

bool NodeSet::insert(const Node& node) {
  if (node.id() >= bits_.size())
    bits_.resize(std::max<size_t>(size_t(node.id()) + 1, 2 * bits_.size()));
  if (bits_[node.id()]) return false;
  bits_[node.id()] = true;
  ++size_;
  return true;
}

NodeSet prune(const Graph& /*graph*/, std::span<const Endpoint> fetches,
              std::span<Node* const> targets, std::span<const Endpoint> feeds) {
  const std::unordered_set<Endpoint, EndpointHash> fed(feeds.begin(),
                                                       feeds.end());
  NodeSet needed;
  std::vector<const Node*> open;
  auto need = [&](const Node* node) {
    if (needed.insert(*node)) open.push_back(node);
  };
  auto need_output = [&](const Endpoint& output) {
    if (output.node != nullptr && !fed.contains(output)) need(output.node);
  };
  for (const Endpoint& fetch : fetches) need_output(fetch);
  for (const Node* target : targets) need(target);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Endpoint& input : node->inputs()) need_output(input);
    for (Node* input : node->control_inputs())
      if (!is_placeholder(*input) || !fed.contains({input, 0})) need(input);
  }
  return needed;
}

}  // namespace tagflow::graph
