// Gradients of ops by an equivalent expression of primitives.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Computes a node's outputs from its inputs with ops that have rules. An output
// that depends on no input may be left invalid.
using Expression = Outputs (*)(const Scope& s, const Node& node,
                               const Outputs& inputs);

// Sets the gradients of all wanted inputs to those of the expression. The
// gradient computes the expression again from all inputs, so this is for ops
// that are rarely differentiated and whose rules would be long.
void set_by_expression(RuleContext& r, Expression express);

}  // namespace tagflow::autodiff
