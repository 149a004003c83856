// Loop-invariant code.
//
// Note [What is hoisted]
// A pure node in a loop is hoisted if all its inputs and control inputs are
// loop constants (Enters with is_constant, or nodes hoisted before). Nothing in
// the loop guards such a node: it runs in iteration 0, even if the loop makes
// no trip, once the Enters' inputs are there, and is dead if one of them is.
// Before the loop it runs and is dead in the same cases. So no computation or
// error is added; they only occur less often. A node that depends on a Switch
// of the loop, even if only by a control edge from the pivot of the body, may
// never run: it stays. A Const in the loop whose control inputs are loop
// constants gets a twin before the loop, for hoisted nodes to read. Inner loops
// are processed first, so that a node can leave several.
#include <algorithm>
#include <unordered_map>

#include "graph/analysis/frames.h"
#include "graph/analysis/topology.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

class Hoisting {
 public:
  Hoisting(Program& program, const FrameMap& frames)
      : graph_(program.graph),
        frames_(frames),
        detour_(program),
        by_frame_(frames.frames().size()) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(graph_));
    for (Node* node : order)
      by_frame_[size_t(frames_.of(*node))].push_back(node);
    // Children come after their parents.
    for (size_t i = by_frame_.size() - 1; i > 0; --i)
      TAGFLOW_RETURN_IF_ERROR(empty_frame(frames_.frames()[i]));
    if (!changed_) {
      graph_.remove(made_);
      return false;
    }
    return detour_.finish();
  }

 private:
  Status empty_frame(const StaticFrame& frame) {
    // Hoisted nodes join those of the outer frame, in topological order: after
    // all of their inputs.
    std::vector<Node*>& around = by_frame_[size_t(frame.parent)];
    const std::vector<Node*> nodes = std::move(by_frame_[size_t(frame.id)]);
    for (Node* node : nodes) {
      const bool is_const = node->is_const();
      if (is_const ? node->control_inputs().empty()
                   : !is_pure(*node) || node->num_inputs() == 0)
        continue;
      Outside outside;
      if (!leave(*node, outside)) continue;
      TAGFLOW_ASSIGN(Node * twin, copy(*node, outside));
      around.push_back(twin);
      if (is_const) {
        twins_[node] = twin;
        made_.push_back(twin);
      } else {
        TAGFLOW_RETURN_IF_ERROR(bring_in(node, frame, twin));
      }
    }
    return {};
  }

  // The inputs of a node before the loop.
  struct Outside {
    std::vector<Endpoint> inputs;
    NodeList controls;
  };

  bool leave(const Node& node, Outside& outside) const {
    for (const Endpoint& input : node.inputs()) {
      const auto source = in_front(detour_.end(input));
      if (!source) return false;
      outside.inputs.push_back(*source);
    }
    return leave_controls(node, outside.controls);
  }

  bool leave_controls(const Node& node, NodeList& outside) const {
    for (Node* control : node.control_inputs()) {
      const auto enter = enters_.find(control);
      const auto source =
          in_front({enter == enters_.end() ? control : enter->second, 0});
      if (!source || !add_dependence(outside, *source)) return false;
    }
    return true;
  }

  // The value of a loop constant before the loop.
  std::optional<Endpoint> in_front(const Endpoint& source) const {
    const Node& node = *source.node;
    if (is_loop_constant(node) && !reads_reference(node))
      return detour_.end(node.inputs()[0]);
    const auto known = twins_.find(&node);
    if (known == twins_.end()) return {};
    return Endpoint{known->second, 0};
  }

  // The node's twin before the loop.
  Result<Node*> copy(const Node& node, const Outside& outside) {
    return graph_.add(name_after(graph_, node), node.op(), outside.inputs,
                      node.attrs(), outside.controls, node.device());
  }

  // Replaces the node's outputs by Enters of the twin's outputs.
  Status bring_in(Node* node, const StaticFrame& frame, Node* twin) {
    changed_ = true;
    for (int i = 0; i < node->num_outputs(); ++i) {
      const Endpoint output{twin, i};
      TAGFLOW_ASSIGN(Node * enter,
                     add_constant_enter(graph_, *node, frame, output));
      detour_.lead({node, i}, {enter, 0});
      if (i > 0) continue;
      enters_[node] = enter;
      detour_.lead_control(node, {enter});
    }
    return {};
  }

  Graph& graph_;
  const FrameMap& frames_;
  Detour detour_;
  std::vector<std::vector<Node*>> by_frame_;       // in topological order
  std::unordered_map<const Node*, Node*> twins_;   // of Consts
  std::vector<Node*> made_;                        // all such twins
  std::unordered_map<const Node*, Node*> enters_;  // of hoisted nodes
  bool changed_ = false;
};

}  // namespace

Result<bool> hoist_invariants(Program& program, const PassContext&) {
  if (std::ranges::none_of(program.graph.nodes(), &Node::is_enter))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  return Hoisting(program, frames).run();
}

}  // namespace tagflow::graph
