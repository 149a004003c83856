// Rules of forward mode: the tangents of a node's outputs, from those of its
// inputs.
//
//   table.add_forward({"Sin"}, [](ForwardContext& r) {
//     r.set(0, ops::mul(r.scope(), r.tangent(0), ops::cos(...)));
//   });
//
// An op needs no forward rule if its rule is made of ops that have rules
// (Note [Transposed rules] in autodiff/transpose.h).
#pragma once

#include <span>
#include <vector>

#include "autodiff/node_context.h"

namespace tagflow::autodiff {

// One node, the tangents of its inputs, and where to put those of its outputs.
// Tangents are dense, or variants as the gradients of containers are (Note
// [Gradients of containers]). The tangent of a variable's handle is that of its
// value. As for RuleContext, all returned values are safe to use after an
// error. Thread-compatible.
class ForwardContext : public NodeContext {
 public:
  // `tangents`: by input; invalid ones are zero. `first_input` is as in
  // RuleContext.
  ForwardContext(Region& region, const Node& node, std::vector<Output> tangents,
                 std::vector<bool> wanted, size_t first_input = 0);

  // --- What comes in. At least one input has a tangent.
  bool has_tangent(int input) const { return tangents_[size_t(input)].valid(); }
  // Zeros of the input's shape if it has none.
  Output tangent(int input);

  // --- What goes out.
  // Whether the tangent of that output is requested.
  bool wants(int port) const { return wanted_[size_t(port)]; }
  // Has no effect if the tangent is not wanted. An output without a tangent
  // has a tangent of zero.
  void set(int port, Output tangent);
  // Sets the tangent of output 0, broadcast to its shape; `tangent` has the
  // shape of that input.
  void set_broadcast(int input, Output tangent);

  // --- Whole rules.
  // For an op that is jointly linear in these inputs: applies the op to their
  // tangents.
  void set_linear(std::span<const int> inputs);
  // For an op that is linear in each of these inputs: sums the op's results for
  // the tangent of one input and the values of the others.
  void set_multilinear(std::span<const int> inputs);
  // For an op of one input and one output whose derivative is a symmetric
  // matrix: its reverse rule makes the tangent.
  void set_symmetric();
  // Transposes the op's reverse rule.
  void set_transposed();

  // --- For autodiff/ only.
  std::vector<Output> take_results() && { return std::move(results_); }

 private:
  // The node's op, applied to these inputs.
  graph::OpResult apply(const Outputs& inputs);

  std::vector<Output> tangents_;
  std::vector<bool> wanted_;
  std::vector<Output> results_;  // by output
};

}  // namespace tagflow::autodiff
