// Gradient: the derivative of y by one tensor.
#pragma once

#include "graph/builder/output.h"

namespace tagflow::autodiff {

using graph::Output;

// The gradient of a tensor x, of x's type and shape: dense, or sparse like
// TensorFlow's IndexedSlices, if only some rows of x were used. The gradient
// of a variable's handle is that of its value; the gradient of a list, a stack
// or the flow of a TensorArray is a variant (Note [Gradients of containers] in
// autodiff/rules/containers.h). A value.
struct Gradient {
  // Dense: the gradient itself. Sparse: `values[i]` is for row `indices[i]` of
  // x; rows with the same index are summed.
  Output values;
  // A vector of int32 or int64. Invalid: the gradient is dense.
  Output indices = {};

  // False if y does not depend on x: the gradient is zero.
  bool valid() const { return values.valid(); }
  bool is_sparse() const { return indices.valid(); }
};

}  // namespace tagflow::autodiff
