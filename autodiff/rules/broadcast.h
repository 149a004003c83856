// Gradients of tensors that were broadcast, summed over the dimensions along
// which they were repeated. RuleContext::set_broadcast() serves most rules.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Whether a tensor of shape `own` is known to keep its shape when it is
// broadcast with one of shape `other`.
bool keeps_shape(const PartialShape& own, const PartialShape& other);

// For an op that broadcasts all but the last two dimensions of its inputs: sets
// the gradient of input 0 or 1 to `gradient`, summed over the dimensions along
// which that input was repeated.
void set_batch_broadcast(RuleContext& r, int input, const Output& gradient);

// Sums a gradient of the shape `to` over the dimensions along which a tensor of
// the shape `from` was broadcast to it.
Output sum_to_shape(const Scope& s, const Output& gradient, const Output& from,
                    const Output& to);

}  // namespace tagflow::autodiff
