// Tangents by rules of reverse mode.
#pragma once

#include <vector>

#include "autodiff/node_context.h"

namespace tagflow::autodiff {

// Note [Transposed rules]
// What a rule makes of the gradients v of a node's outputs is linear in v: J' v
// for the derivative J of the node. So the gradient of <J' v, t> by v is J t,
// the tangent. It does not depend on v, and is made of the rules of the ops
// that the node's own rule is made of: there are rules for whatever has a rule.
//
// Zeros of the output's shape stand for v. What is made has them for their
// shape at most, and reads that of the output instead; the rest of J' v leads
// to nothing, and is removed when all tangents are made.
//
// A rule of complex numbers is the adjoint of J by the inner product of their
// real and imaginary parts, and so is the rule of each of its ops: the adjoint
// of the adjoint is J, with no conjugate too many.

// The tangents of the node's outputs by those of its inputs, which are zero
// where they are invalid; invalid ones where they are not wanted, or zero.
// After an error of the region's scope all are.
std::vector<Output> transposed_tangents(Region& region, const Node& node,
                                        const std::vector<Output>& tangents,
                                        const std::vector<bool>& wanted);

}  // namespace tagflow::autodiff
