// Limits for gradients, before an optimizer applies them.
//
//   const ClippedGradients clipped = clip_by_global_norm(s, gradients, 5);
//   adam.minimize(s, loss, variables, {.transform = clipping_to(5)});
//
// Gradients are dense or sparse and of floating-point types; invalid ones stay
// invalid. A sparse one stays sparse: rows with the same index are summed
// first, so the result is that of the equivalent dense gradient. Limits are
// scalars, literals or tensors. Thread-compatible, like the graph; errors are
// kept by the scope.
#pragma once

#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/train/optimizer.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// Each element x becomes min(max(x, low), high). Rows that a sparse gradient
// does not have stay 0, so the limits should include 0.
std::vector<Gradient> clip_by_value(const graph::Scope& s,
                                    const std::vector<Gradient>& gradients,
                                    const graph::Input& low,
                                    const graph::Input& high);

// Each gradient g becomes g limit / max(|g|, limit), where |g| is the root of
// the sum of its squares: a longer one gets the length `limit`, others stay.
// All of g is NaN if |g| is not finite. `limit` is positive.
std::vector<Gradient> clip_by_norm(const graph::Scope& s,
                                   const std::vector<Gradient>& gradients,
                                   const graph::Input& limit);

// The root of the sum of all squares of all gradients: a scalar, of double if
// any of them is, else of float; 0 without gradients.
Output global_norm(const graph::Scope& s,
                   const std::vector<Gradient>& gradients);

struct ClippedGradients {
  std::vector<Gradient> gradients;
  Output norm;  // before: a scalar, as of global_norm()
};
// Like clip_by_norm(), with the global norm n: each becomes g limit / max(n,
// limit), so that all keep their proportions (Pascanu, Mikolov and Bengio, "On
// the difficulty of training recurrent neural networks", 2013, algorithm 1).
ClippedGradients clip_by_global_norm(const graph::Scope& s,
                                     const std::vector<Gradient>& gradients,
                                     const graph::Input& limit);

// clip_by_global_norm() for ApplyOptions::transform.
GradientTransform clipping_to(const graph::Input& limit);

}  // namespace tagflow::autodiff
