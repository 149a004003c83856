// The gradient arrays of TensorFlow: TensorArrays in which its gradients of
// TensorArrays are summed. They have gradients like any other array.
#pragma once

#include <span>

#include "autodiff/paths.h"

namespace tagflow::autodiff {

// All TensorArrayGradV3 of one array and one source return the same gradient
// array. Gradients follow only its flows. Each flow stands for what was added
// before it: a write adds to it, and a sum of flows has what each of them has.
// Returns Unimplemented, naming nodes, if that does not hold:
//   - a y depends on a read, and an x leads to a write that the read may see,
//     but no flow leads from the write to the read;
//   - flows with a common part are summed.
Status check_gradient_arrays(Analysis& analysis, const Paths& paths,
                             std::span<const Endpoint> ys);

}  // namespace tagflow::autodiff
