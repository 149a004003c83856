// jvp: what a graph's tensors change by, where others change: forward mode.
//
//   const Output dy = jvp(s, {y}, {x}, {dx})[0];
//
// As gradients(), of any graph, to any order: each may be made of the other's
// results.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct ForwardOptions {
  // Taken for constants.
  graph::Outputs stop_gradients = {};
  // Zeros for a y that depends on no x, in place of an invalid Output.
  bool zeros_if_unconnected = false;
  // For tests: whether it is checked that each tangent is live exactly where
  // its tensor is, an Internal error where that is not so, or not seen, as of
  // a Merge of which not all inputs are known to be alternatives.
  bool check_liveness = false;
};

// The product of the Jacobian of ys by xs with `tangents`: for each y the sum
// of its derivatives along the tangents of all xs, of y's shape. An x is a
// tensor of a floating-point or complex type, or a variable: its handle or its
// reference. Its tangent is of its type and shape, or those of the variable's
// value; an invalid one is zero. Of an x that depends on another one, both what
// comes by that and its own tangent count. Each tangent is live exactly where
// its tensor is.
//
// Tangents are computed beside the graph, in the same loops and branches: a
// loop makes its trips once, and nothing is saved for it. Calls, and loops and
// conditionals of TensorFlow 2, between xs and ys are replaced by primitives as
// gradients() does it, whose rules are used, and whose errors are those of
// this. Besides, the scope fails where tangents are not as many as xs, or one
// is of another type or shape than its x.
graph::Outputs jvp(const graph::Scope& scope, const graph::Outputs& ys,
                   const graph::Outputs& xs, const graph::Outputs& tangents,
                   const ForwardOptions& options = {});

}  // namespace tagflow::autodiff
