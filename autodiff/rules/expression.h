// Gradients of ops by what primitives give the same.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Makes of a node's inputs what its outputs are, of ops that have rules; an
// output that depends on no input may be left invalid.
using Expression = Outputs (*)(const Scope& s, const Node& node,
                               const Outputs& inputs);

// Sets the gradients of all inputs that are wanted to those of the expression.
// It is computed anew where the gradient is, from all inputs: for ops that are
// rarely differentiated in this way, of which a rule would be long.
void set_by_expression(RuleContext& r, Expression express);

}  // namespace tagflow::autodiff
