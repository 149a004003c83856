#include "graph/analysis/node_list.h"

#include <algorithm>

#include "graph/analysis/node_queries.h"

namespace tagflow::graph {

void NodeList::add(Node* node) {
  constexpr size_t kFew = 8;
  if (nodes_.size() < kFew) {
    if (std::ranges::find(nodes_, node) != nodes_.end()) return;
  } else {
    if (known_.empty()) known_.insert(nodes_.begin(), nodes_.end());
    if (!known_.insert(node).second) return;
  }
  nodes_.push_back(node);
}

void NodeList::add(std::span<Node* const> nodes) {
  for (Node* node : nodes) add(node);
}

bool add_dependence(NodeList& list, const Endpoint& source) {
  const auto controls = source.node->control_inputs();
  if (source.node->is_const() && controls.size() <= kMaxControls) {
    list.add(controls);
    return true;
  }
  if (!control_tells_deadness(source)) return false;
  list.add(source.node);
  return true;
}

}  // namespace tagflow::graph
