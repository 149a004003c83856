// Rules of element-wise ops, which add_elementwise_rules() adds.
#pragma once

namespace tagflow::autodiff {

class RuleTable;

void add_elementwise_binary_rules(RuleTable& table);
void add_elementwise_complex_rules(RuleTable& table);

}  // namespace tagflow::autodiff
