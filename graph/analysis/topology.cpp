#include "graph/analysis/topology.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace tagflow::graph {
namespace {

// How many nodes of a cycle a message names.
constexpr size_t kShownCycle = 12;

// Names a cycle among the nodes not `placed`, each of which waits for another.
Status cycle_error(const Precedence& before, const std::vector<bool>& placed,
                   const std::function<std::string_view(size_t)>& name) {
  auto at = size_t(std::ranges::find(placed, false) - placed.begin());
  // Walking back must reach one of them twice.
  std::vector<size_t> path;
  std::vector<bool> on_path(placed.size());
  while (!on_path[at]) {
    on_path[at] = true;
    path.push_back(at);
    at = *std::ranges::find_if(before.of(at),
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

// Most graphs are in order already and need no sorting.
bool is_in_order(const Precedence& before) {
  for (size_t i = 0; i < before.size(); ++i)
    for (size_t input : before.of(i))
      if (input >= i) return false;
  return true;
}

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

Precedence Precedence::reversed() const {
  Precedence after(size(), before_.size());
  after.first_.assign(size() + 1, 0);
  after.before_.resize(before_.size());
  for (const uint32_t thing : before_) ++after.first_[thing + 1];
  std::partial_sum(after.first_.begin(), after.first_.end(),
                   after.first_.begin());
  std::vector<size_t> next = after.first_;
  for (size_t i = 0; i < size(); ++i)
    for (const uint32_t thing : of(i))
      after.before_[next[thing]++] = uint32_t(i);
  return after;
}

Result<std::vector<uint32_t>> topological_order(
    const Precedence& before,
    const std::function<std::string_view(size_t)>& name) {
  const size_t count = before.size();
  std::vector<uint32_t> order;
  if (is_in_order(before)) {
    order.resize(count);
    std::iota(order.begin(), order.end(), uint32_t(0));
    return order;
  }
  const Precedence after = before.reversed();
  std::vector<size_t> pending(count);
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    pending[i] = before.of(i).size();
    if (pending[i] == 0) ready.push(uint32_t(i));
  }
  order.reserve(count);
  std::vector<bool> placed(count);
  while (!ready.empty()) {
    const uint32_t i = ready.top();
    ready.pop();
    order.push_back(i);
    placed[i] = true;
    for (const uint32_t thing : after.of(i))
      if (--pending[thing] == 0) ready.push(thing);
  }
  if (order.size() < count) return cycle_error(before, placed, name);
  return order;
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
