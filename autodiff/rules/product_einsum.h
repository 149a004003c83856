// The rule of Einsum.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// For one or two operands, with all features of the op: repeated labels, labels
// that are summed over, and an ellipsis.
void einsum_rule(RuleContext& r);

}  // namespace tagflow::autodiff
