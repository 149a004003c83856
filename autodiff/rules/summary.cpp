// Summaries.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_summary_rules(RuleTable& table) {
  no_gradient(table, "MergeSummary ScalarSummary", "it is about strings");
}

}  // namespace tagflow::autodiff
