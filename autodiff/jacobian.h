// Jacobians, Hessians, and their products with vectors.
//
// All are of real or complex ys and xs; of complex ones each element counts as
// one, with the gradients that gradients() gives: the conjugates of the
// derivatives of holomorphic functions. Errors are those of gradients() and
// jvp(): the scope fails, and results are invalid.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct JacobianOptions {
  // How many rows are computed at once; at least 1.
  int64_t parallel_iterations = 10;
};

// The gradient of each element of y by x, of shape y.shape + x.shape, both as
// they are when the graph runs: a loop over the elements of y, with the
// gradient of one in its body. Zeros where y does not depend on x. Live where y
// is.
graph::Output jacobian(const graph::Scope& scope, const graph::Output& y,
                       const graph::Output& x,
                       const JacobianOptions& options = {});

// The second derivatives of the sum of all elements of y: of shape x.shape +
// x.shape, one for each of xs. Blocks off the diagonal are jacobian() of
// gradients.
graph::Outputs hessian(const graph::Scope& scope, const graph::Output& y,
                       const graph::Outputs& xs,
                       const JacobianOptions& options = {});

// The Hessian of the sum of all elements of y, by all xs together, times the
// vector that `vs` are: for each x what its gradient changes by along vs, of
// its shape; zeros where that is nothing. Takes a small multiple of the time of
// a gradient, however many elements the xs have, since it is forward mode of
// it: no stacks but those of the gradient. Invalid vs are zero.
graph::Outputs hessian_vector_product(const graph::Scope& scope,
                                      const graph::Output& y,
                                      const graph::Outputs& xs,
                                      const graph::Outputs& vs);

}  // namespace tagflow::autodiff
