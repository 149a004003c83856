// Rules of forward mode: the tangents of a node's outputs, from those of its
// inputs.
//
//   table.add_forward({"Sin"}, [](ForwardContext& r) {
//     r.set(0, ops::mul(r.scope(), r.tangent(0), ops::cos(...)));
//   });
//
// An op needs none where its rule is made of ops that have rules: Note
// [Transposed rules] in autodiff/transpose.h.
#pragma once

#include <span>
#include <vector>

#include "autodiff/node_context.h"

namespace tagflow::autodiff {

// One node, the tangents of its inputs, and where to put those of its outputs.
// All are dense, or variants as gradients of containers are (Note [Gradients of
// containers]). The tangent of a variable, which its handle has, is that of its
// value. As for RuleContext, all that this returns is harmless after an error.
// Thread-compatible.
class ForwardContext : public NodeContext {
 public:
  // `tangents`: by input; invalid ones are zero. `first_input` as of
  // RuleContext.
  ForwardContext(Region& region, const Node& node, std::vector<Output> tangents,
                 std::vector<bool> wanted, size_t first_input = 0);

  // --- What comes in. At least one input has a tangent.
  bool has_tangent(int input) const { return tangents_[size_t(input)].valid(); }
  // Zeros of the input's shape where it has none.
  Output tangent(int input);

  // --- What goes out.
  // Whether the tangent of that output is asked for.
  bool wants(int port) const { return wanted_[size_t(port)]; }
  // No effect where it is not wanted. An output without one has a tangent of
  // zero.
  void set(int port, Output tangent);
  // The tangent of output 0, broadcast to the shape that it has; `tangent` is
  // of the shape of that input.
  void set_broadcast(int input, Output tangent);

  // --- Whole rules.
  // Of an op that is linear in these inputs together: what it makes of their
  // tangents.
  void set_linear(std::span<const int> inputs);
  // Of an op that is linear in each of these inputs by itself: the sum of what
  // it makes of the tangent of one and the values of the others.
  void set_multilinear(std::span<const int> inputs);
  // Of an op of one input and one output, whose derivative is a symmetric
  // matrix: then its rule makes tangents, too.
  void set_symmetric();
  // By the transpose of the op's rule.
  void set_transposed();

  // --- For autodiff/ only.
  std::vector<Output> take_results() && { return std::move(results_); }

 private:
  // The node's op, of these inputs.
  graph::OpResult apply(const Outputs& inputs);

  std::vector<Output> tangents_;
  std::vector<bool> wanted_;
  std::vector<Output> results_;  // by output
};

}  // namespace tagflow::autodiff
