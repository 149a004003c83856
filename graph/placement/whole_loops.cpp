#include "graph/placement/whole_loops.h"

#include <algorithm>

#include "graph/topology.h"

namespace tagflow::graph {
namespace {

// A token of it is not there in every iteration.
bool is_from_variable(const Node& node) {
  return node.is_next_iteration() ||
         (node.is_enter() && !node.is_constant_enter());
}

bool is_loop_variable(const Node& node) {
  bool has_enter = false, has_next = false;
  for (const Endpoint& input : node.inputs()) {
    has_enter |= input.node->is_enter();
    has_next |= input.node->is_next_iteration();
  }
  return node.is_merge() && has_enter && has_next;
}

// Whose tokens are dead because which predicates are false: a bit of a node's
// mask for each frame around it, that of the outermost being the lowest.
class Guards {
 public:
  Guards(const Graph& graph, const FrameMap& frames)
      : frames_(frames), masks_(graph.end_id()) {}

  // Whether the NextIteration is dead where its frame's predicate is false.
  bool hold(const Node& next) const {
    return (masks_[next.id()] & bit_of(frames_.of(next))) != 0;
  }

  void visit(const Node& node) {
    uint64_t mask = 0;
    if (node.is_merge()) {
      mask = of_merge(node);
    } else if (!node.is_control_trigger()) {
      for (const Endpoint& input : node.inputs()) mask |= of(input);
      for (const Node* control : node.control_inputs())
        mask |= masks_[control->id()];
    }
    if (node.is_exit()) mask &= ~bit_of(frames_.of(node));
    masks_[node.id()] = mask;
  }

 private:
  // Nothing for the root, and for what is too deep: that is then not guarded.
  uint64_t bit_of(FrameId id) const {
    const int depth = frames_.frame(id).depth;
    return depth < 1 || depth > 64 ? 0 : uint64_t(1) << (depth - 1);
  }

  uint64_t of(const Endpoint& input) const {
    uint64_t mask = masks_[input.node->id()];
    if (!input.node->is_switch() || input.port != 1) return mask;
    const Node* predicate = input.node->inputs()[1].node;
    while (predicate->is_identity()) predicate = predicate->inputs()[0].node;
    if (predicate->is_loop_cond()) mask |= bit_of(frames_.of(*predicate));
    return mask;
  }

  // In the first iteration only the Enters count.
  uint64_t of_merge(const Node& node) const {
    uint64_t mask = ~uint64_t(0);
    bool has_any = false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (is_back_edge(node, i)) continue;
      mask &= of(node.inputs()[i]);
      has_any = true;
    }
    return has_any ? mask : 0;
  }

  const FrameMap& frames_;
  std::vector<uint64_t> masks_;  // by node id
};

}  // namespace

bool is_variable_edge(const Node& node, size_t index) {
  return node.is_merge() && is_from_variable(*node.inputs()[index].node);
}

std::vector<bool> find_whole_loops(const Graph& graph, const FrameMap& frames,
                                   std::span<Node* const> order) {
  std::vector<bool> whole(frames.frames().size());
  const auto keep = [&](FrameId frame) {
    if (frame != FrameId::kRoot) whole[size_t(frame)] = true;
  };
  Guards guards(graph, frames);
  for (const Node* node : order) {
    guards.visit(*node);
    const bool is_variable = is_loop_variable(*node);
    for (const Endpoint& input : node->inputs())
      if (is_from_variable(*input.node) && !is_variable) keep(frames.of(*node));
    for (const Node* control : node->control_inputs())
      if (is_from_variable(*control)) keep(frames.of(*node));
  }
  for (const StaticFrame& frame : frames.frames()) {
    const bool can_end =
        !frame.loop_conds.empty() &&
        std::ranges::all_of(frame.next_iterations, [&](const Node* next) {
          return guards.hold(*next);
        });
    if (!can_end) keep(frame.id);
    // Parents come before their children.
    if (whole[size_t(frame.parent)]) keep(frame.id);
  }
  return whole;
}

}  // namespace tagflow::graph
