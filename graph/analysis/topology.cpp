#include "graph/analysis/topology.h"

#include "graph/precedence.h"

namespace tagflow::graph {
namespace {

// The last nodes of a graph, by their position among them.
class LastNodes {
 public:
  explicit LastNodes(std::span<Node* const> nodes)
      : nodes_(nodes), first_id_(nodes.front()->id()) {
    position_.resize(nodes.back()->id() - first_id_ + 1);
    for (size_t i = 0; i < nodes.size(); ++i)
      position_[nodes[i]->id() - first_id_] = uint32_t(i);
  }

  // Calls found(position) for the source of each edge into node `i`, if it is
  // among them, except for back edges.
  template <class Found>
  void visit_edges(size_t i, const Found& found) const {
    const Node& node = *nodes_[i];
    const auto visit = [&](const Node* source) {
      if (source->id() >= first_id_) found(position_[source->id() - first_id_]);
    };
    for (size_t k = 0; k < node.inputs().size(); ++k) {
      const Node* source = node.inputs()[k].node;
      if (source != nullptr && !is_back_edge(node, k)) visit(source);
    }
    for (const Node* source : node.control_inputs()) visit(source);
  }

  bool are_in_order() const {
    bool in_order = true;
    for (size_t i = 0; i < nodes_.size() && in_order; ++i)
      visit_edges(i, [&](uint32_t source) { in_order &= source < i; });
    return in_order;
  }

 private:
  const std::span<Node* const> nodes_;
  const NodeId first_id_;
  std::vector<uint32_t> position_;  // by id, from the first one's on
};

}  // namespace

bool is_back_edge(const Node& node, size_t index) {
  const Node* source = node.inputs()[index].node;
  return node.is_merge() && source != nullptr && source->is_next_iteration();
}

Successors find_successors(const Graph& graph) {
  Successors successors(graph.end_id());
  for (const Node* node : graph.nodes()) {
    for (const Endpoint& input : node->inputs())
      if (input.node != nullptr) successors[input.node->id()].push_back(node);
    for (const Node* control : node->control_inputs())
      successors[control->id()].push_back(node);
  }
  return successors;
}

std::vector<bool> all_after(const Successors& successors,
                            std::vector<const Node*> nodes,
                            const std::function<bool(const Node&)>& is_end) {
  std::vector<bool> found(successors.size());
  for (const Node* node : nodes) found[node->id()] = true;
  while (!nodes.empty()) {
    const Node* node = nodes.back();
    nodes.pop_back();
    if (is_end != nullptr && is_end(*node)) continue;
    for (const Node* next : successors[node->id()])
      if (!found[next->id()]) {
        found[next->id()] = true;
        nodes.push_back(next);
      }
  }
  return found;
}

Result<std::vector<Node*>> topological_order(const Graph& graph) {
  return topological_order(graph, 0);
}

Result<std::vector<Node*>> topological_order(const Graph& graph, size_t first) {
  const auto nodes = graph.nodes().subspan(first);
  if (nodes.empty()) return std::vector<Node*>();
  const LastNodes last(nodes);
  if (last.are_in_order())
    return std::vector<Node*>(nodes.begin(), nodes.end());

  Precedence before(nodes.size(), 2 * nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    last.visit_edges(i, [&](uint32_t source) { before.add(source); });
    before.end_list();
  }
  TAGFLOW_ASSIGN(const auto indices, topological_order(before, [&](size_t i) {
                   return std::string_view(nodes[i]->name());
                 }));
  std::vector<Node*> order;
  order.reserve(nodes.size());
  for (size_t i : indices) order.push_back(nodes[i]);
  return order;
}

}  // namespace tagflow::graph
