// gradients(): extends a graph with its derivatives.
//
//   const std::vector<Gradient> grads = gradients(s, {loss}, {w, b});
//   ops::sub(s, w, ops::mul(s, 0.1, grads[0].values));
//
// The graph may be built here or come from a file. Loops, conditionals,
// functions, TensorArrays and lists are differentiated to any order, since the
// result is a plain graph again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autodiff/explain.h"
#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct GradientOptions {
  // The gradient of each y, of its shape; ones if it is left out or invalid.
  graph::Outputs grad_ys = {};
  // Taken for constants.
  graph::Outputs stop_gradients = {};
  // If not null, receives the values of loops that the gradient needs.
  std::vector<KeptValue>* kept = nullptr;
  // What gradients keep of loops, by the names of their frames: "all",
  // "every:K" or "log". Overrides WhileOptions::save.
  std::map<std::string, std::string> save = {};
  // Return zeros for an x on which no y depends, instead of an invalid
  // Gradient.
  bool zeros_if_unconnected = false;
  // Check that each gradient is live exactly where its tensor is, or fail with
  // Internal; this doubles the cost. For tests: it also reports sums whose
  // terms cannot be proven to be equally live.
  bool check_liveness = false;
};

// The gradients of the sum of all elements of all ys, by each of xs. An x is a
// tensor of a floating-point or complex type, or the handle or reference of a
// variable, whose gradient is the sum of those of all reads. Each read counts
// with the version that it saw; assigned values count as constants.
//
// Calls, conditionals and loops of TensorFlow 2 (`While`, `If`) between xs and
// ys are replaced by primitives, once; their nodes keep their names and become
// Identities of the replacement. Nodes that save values for the gradient are
// added to the loops of the graph, but run only if a gradient is fetched.
//
// In the body of a loop, ys may be tensors of the iteration, and xs of the same
// iteration or from outside. The gradient by an x from outside is that of this
// iteration alone, through loop-invariant tensors. The scope fails, and all
// gradients are invalid, if
//   - an op between an x and a y has no rule (Unimplemented, with the path),
//   - a y or x has no derivative for its type, or they are in different loops,
//   - a loop between them does not end by its LoopCond.
std::vector<Gradient> gradients(const graph::Scope& scope,
                                const graph::Outputs& ys,
                                const graph::Outputs& xs,
                                const GradientOptions& options = {});

// gradients() with sparse gradients made dense.
graph::Outputs dense_gradients(const graph::Scope& scope,
                               const graph::Outputs& ys,
                               const graph::Outputs& xs,
                               const GradientOptions& options = {});

}  // namespace tagflow::autodiff
