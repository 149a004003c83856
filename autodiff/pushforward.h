// Pushforward: the walk from xs to ys in forward mode, beside the graph.
#pragma once

#include <unordered_map>
#include <vector>

#include "autodiff/frame_scopes.h"
#include "autodiff/paths.h"

namespace tagflow::autodiff {

// Note [Tangents]
// Each tensor on a path from an x to a y gets a tangent, computed in the same
// frame: the derivative of the tensor if the xs change by their tangents. A
// node is visited after all nodes that it reads; its forward rule makes the
// tangents of its outputs. Control flow is its own dual:
//
//   Switch   of the tangent, by the same predicate
//   Merge    of the tangents of its inputs
//   loop     one more variable for each that is on a path: Enter, Merge,
//            Switch, NextIteration and Exit of the tangent
//
// So the loop makes its trips once, with twice the variables, and nothing is
// saved. A variable is on a path if it is on one in any iteration (Paths); an
// iteration in which its tangent is missing gets zeros.
//
// Invariants:
//   1. The tangent of a tensor is live exactly where the tensor is.
//   2. It has the tensor's type and shape, or, for a variable's handle or
//      reference, those of the value. The tangent of a container is a variant.
//   3. A missing tangent is zero.
class Pushforward {
 public:
  // `frame` is the frame of the xs; all arguments outlive this.
  Pushforward(Analysis& analysis, const Paths& paths, FrameId frame,
              FrameScopes& scopes)
      : analysis_(analysis), paths_(paths), frame_(frame), scopes_(scopes) {}

  // Sets the tangent of an x of the frame or of one around it. If x depends on
  // another x, the tangent computed from that is added. REQUIRES: before run().
  void seed(const Endpoint& x, const Output& tangent);
  // After an error of the scopes no tangent is usable.
  Status run();
  // An invalid result means zero. REQUIRES: after run().
  Output tangent(const Endpoint& tensor) const;
  // The tangents of all tensors that have one.
  const std::unordered_map<Endpoint, Output, graph::EndpointHash>& tangents()
      const {
    return tangents_;
  }
  // The tangent of a tensor that has none: zeros, live where it is.
  Output zeros(const Endpoint& tensor) {
    return zeros(tensor, analysis_.is_container(tensor));
  }

 private:
  bool is_ok() const { return scopes_.status().ok(); }
  bool is_on_path(const Node& node) const;
  void visit(Node& node);
  // Control flow: the same op, applied to tangents.
  void visit_primitive(Node& node);
  void visit_by_rule(Node& node);
  // Reads `inputs`; a null one is a back edge.
  Node* add_twin(const Node& node, std::vector<Endpoint> inputs);
  void close_loops();
  // `is_container`: whether its tangent is a variant.
  Output zeros(const Endpoint& tensor, bool is_container);
  Endpoint tangent_or_zeros(const Endpoint& tensor, bool is_container);
  void set(const Endpoint& tensor, Output tangent);
  // Gates a tangent that may be live in more cases than its tensor.
  Output held_back(const Output& tangent, const Endpoint& tensor);
  const graph::Scope& scope_of(const Endpoint& tensor);

  Analysis& analysis_;
  const Paths& paths_;
  const FrameId frame_;
  FrameScopes& scopes_;
  std::unordered_map<Endpoint, Output, graph::EndpointHash> tangents_;
  // The Merges whose back edges are open, each with the Merge of its tangent.
  std::vector<std::pair<Node*, Node*>> open_;
};

}  // namespace tagflow::autodiff
