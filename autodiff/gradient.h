// Gradient: what is known of the derivative of y by one tensor.
#pragma once

#include "graph/builder/output.h"

namespace tagflow::autodiff {

using graph::Output;

// The gradient of a tensor x, of x's type and shape: dense, or sparse as
// TensorFlow's IndexedSlices are, where only some rows of x were used. Of a
// resource x it is that of the variable's value; of a list, a stack or the flow
// of a TensorArray it is a variant (Note [Gradients of containers] in
// autodiff/rules/containers.h). A value.
struct Gradient {
  // Dense: the gradient itself. Sparse: rows, `values[i]` for row `indices[i]`
  // of x; rows of one index are added.
  Output values;
  // A vector of int32 or int64. Invalid: the gradient is dense.
  Output indices = {};

  // False where y does not depend on x: the gradient is zero.
  bool valid() const { return values.valid(); }
  bool is_sparse() const { return indices.valid(); }
};

}  // namespace tagflow::autodiff
