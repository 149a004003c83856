// The rules of calls.
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

void add_call_rules(RuleTable& table);
// The rule for a node whose op is a library function with a gradient function.
void function_rule(RuleContext& r);
// The rule for a node whose gradient a SavedModel stores.
void stored_gradient_rule(RuleContext& r);

}  // namespace tagflow::autodiff
