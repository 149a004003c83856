// Tangents from rules of reverse mode.
#pragma once

#include <vector>

#include "autodiff/node_context.h"

namespace tagflow::autodiff {

// Note [Transposed rules]
// The result of a rule is linear in the gradients v of the node's outputs: it
// is J' v for the derivative J of the node. So the gradient of <J' v, t> by v
// is J t, the tangent. It does not depend on v, and is made with the rules of
// the ops that the node's rule uses. So every op with a rule has tangents, too.
//
// Zeros of the output's shape stand for v. The result uses at most their shape,
// and reads that of the output instead; the rest of J' v has no readers, and is
// removed when all tangents are made.
//
// For complex numbers, a rule is the adjoint of J for the inner product of
// their real and imaginary parts, and so is the rule of each of its ops. So the
// adjoint of the adjoint is J, and no conjugate is left over.

// The tangents of the node's outputs, from those of its inputs, where invalid
// means zero. A result is invalid if it is not wanted, or zero. After an
// error of the region's scope all are invalid.
std::vector<Output> transposed_tangents(Region& region, const Node& node,
                                        const std::vector<Output>& tangents,
                                        const std::vector<bool>& wanted);

}  // namespace tagflow::autodiff
