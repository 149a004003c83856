// Rules of sparse and ragged tensors, which add_sparse_rules() adds.
#pragma once

namespace tagflow::autodiff {

class RuleTable;

void add_sparse_math_rules(RuleTable& table);
void add_sparse_ragged_rules(RuleTable& table);

}  // namespace tagflow::autodiff
