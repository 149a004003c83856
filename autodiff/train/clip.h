// Limits for gradients, before an optimizer applies them.
//
//   const ClippedGradients clipped = clip_by_global_norm(s, gradients, 5);
//   adam.minimize(s, loss, variables, {.transform = clipping_to(5)});
//
// Gradients are dense or sparse and of floating-point types; invalid ones stay
// invalid. A sparse one stays sparse: its rows of one index are added first, so
// that it counts as the dense gradient that it stands for. Limits are scalars,
// literals or tensors. Thread-compatible, as the graph; an error is the
// scope's.
#pragma once

#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/train/optimizer.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// Each element x becomes min(max(x, low), high). Rows that a sparse gradient
// does not have stay 0: let 0 be within the limits.
std::vector<Gradient> clip_by_value(const graph::Scope& s,
                                    const std::vector<Gradient>& gradients,
                                    const graph::Input& low,
                                    const graph::Input& high);

// Each gradient g becomes g limit / max(|g|, limit), where |g| is the root of
// the sum of its squares: longer ones get the length `limit`, others stay. All
// of g is NaN where |g| is not finite. `limit` is positive.
std::vector<Gradient> clip_by_norm(const graph::Scope& s,
                                   const std::vector<Gradient>& gradients,
                                   const graph::Input& limit);

// The root of the sum of all squares of all gradients: a scalar, double where
// one of them is, else float; 0 without gradients.
Output global_norm(const graph::Scope& s,
                   const std::vector<Gradient>& gradients);

struct ClippedGradients {
  std::vector<Gradient> gradients;
  Output norm;  // before: a scalar, as of global_norm()
};
// As clip_by_norm(), by the global norm n: each becomes g limit / max(n,
// limit), so that all keep their proportions (Pascanu, Mikolov and Bengio, "On
// the difficulty of training recurrent neural networks", 2013, algorithm 1).
ClippedGradients clip_by_global_norm(const graph::Scope& s,
                                     const std::vector<Gradient>& gradients,
                                     const graph::Input& limit);

// clip_by_global_norm() for ApplyOptions::transform.
GradientTransform clipping_to(const graph::Input& limit);

}  // namespace tagflow::autodiff
