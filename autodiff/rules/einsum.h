// The rule of Einsum.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Of one or two operands, with all that the op knows: labels that repeat, that
// are summed over, and an ellipsis.
void einsum_rule(RuleContext& r);

}  // namespace tagflow::autodiff
