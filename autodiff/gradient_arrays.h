// The gradient arrays of TensorFlow: TensorArrays in which its gradients of
// TensorArrays are added up, and which have gradients like any other.
#pragma once

#include <span>

#include "autodiff/paths.h"

namespace tagflow::autodiff {

// All TensorArrayGradV3 of one array and one source give the same gradient
// array, which is there once. Gradients go by its flows alone, each of which
// stands for what was added on the way: a write adds to it, and a sum of flows
// has what each of them has. Unimplemented, naming nodes, where that is not so:
//   - a y depends on a read, and an x leads to a write that the read may see,
//     but no flow leads from the write to the read;
//   - flows are added that have a part in common.
Status check_gradient_arrays(Analysis& analysis, const Paths& paths,
                             std::span<const Endpoint> ys);

}  // namespace tagflow::autodiff
