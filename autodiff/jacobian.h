// Jacobians, Hessians, and their products with vectors.
//
// The ys and xs are real or complex. A complex element counts as one, with the
// gradient that gradients() gives: the conjugate of the derivative of a
// holomorphic function. Errors are those of gradients() and jvp(): the scope
// fails, and results are invalid.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct JacobianOptions {
  // How many rows are computed at once; at least 1.
  int64_t parallel_iterations = 10;
};

// The gradient of each element of y by x, of shape y.shape + x.shape, both
// run-time shapes. It is a loop over the elements of y, with the gradient of
// one element in its body. Zeros if y does not depend on x. Live where y is.
graph::Output jacobian(const graph::Scope& scope, const graph::Output& y,
                       const graph::Output& x,
                       const JacobianOptions& options = {});

// The second derivatives of the sum of all elements of y: of shape x.shape +
// x.shape, one for each of xs. For off-diagonal blocks, call jacobian() on
// gradients.
graph::Outputs hessian(const graph::Scope& scope, const graph::Output& y,
                       const graph::Outputs& xs,
                       const JacobianOptions& options = {});

// The Hessian of the sum of all elements of y, by all xs together, times the
// vector `vs`: for each x, the derivative of its gradient along vs, of the
// shape of x, or zeros. It is the forward mode of the gradient, so it takes a
// small multiple of the gradient's time, independent of the number of elements
// of the xs, and adds no stacks. Invalid vs are zero.
graph::Outputs hessian_vector_product(const graph::Scope& scope,
                                      const graph::Output& y,
                                      const graph::Outputs& xs,
                                      const graph::Outputs& vs);

}  // namespace tagflow::autodiff
