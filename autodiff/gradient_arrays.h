// The gradient arrays of TensorFlow: TensorArrays in which its gradients of
// TensorArrays are added up, and which have gradients like any other.
#pragma once

#include <span>

#include "autodiff/paths.h"

namespace tagflow::autodiff {

// All TensorArrayGradV3 of one array and one source give the same gradient
// array; what one node writes to it, another one may read. Gradients go by the
// flows alone. Unimplemented, naming both nodes, where a y depends on a read,
// and an x leads to a write that the read may see, but no flow leads from the
// write to the read.
Status check_gradient_arrays(Analysis& analysis, const Paths& paths,
                             std::span<const Endpoint> ys);

}  // namespace tagflow::autodiff
