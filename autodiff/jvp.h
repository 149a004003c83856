// jvp(): derivatives of tensors along tangents of others (forward mode).
//
//   const Output dy = jvp(s, {y}, {x}, {dx})[0];
//
// Like gradients(), it takes any graph, to any order. Each of the two can be
// applied to the results of the other.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct ForwardOptions {
  // Taken for constants.
  graph::Outputs stop_gradients = {};
  // Return zeros for a y that depends on no x, instead of an invalid Output.
  bool zeros_if_unconnected = false;
  // For tests: check that each tangent is live exactly where its tensor is, or
  // fail with Internal. It also fails if that cannot be proven, as for a
  // Merge whose inputs are not all known to be alternatives.
  bool check_liveness = false;
};

// The product of the Jacobian of ys by xs with `tangents`: for each y the sum
// of its derivatives along the tangents of all xs, of y's shape. An x is a
// tensor of a floating-point or complex type, or a variable: its handle or its
// reference. Its tangent has its type and shape, or those of the variable's
// value; an invalid tangent is zero. If an x depends on another x, its tangent
// is added to the one computed from the other. Each tangent is live exactly
// where its tensor is.
//
// Tangents are computed beside the graph, in the same loops and branches: a
// loop makes its trips once, and nothing is saved. Calls, and loops and
// conditionals of TensorFlow 2, between xs and ys are replaced by primitives as
// in gradients(), with the same rules and errors. The scope also fails if
// the numbers of tangents and xs differ, or a tangent has another type or shape
// than its x.
graph::Outputs jvp(const graph::Scope& scope, const graph::Outputs& ys,
                   const graph::Outputs& xs, const graph::Outputs& tangents,
                   const ForwardOptions& options = {});

}  // namespace tagflow::autodiff
