// Rules of reductions, which add_reduction_rules() adds.
#pragma once

namespace tagflow::autodiff {

class RuleTable;

void add_reduction_scan_rules(RuleTable& table);

}  // namespace tagflow::autodiff
