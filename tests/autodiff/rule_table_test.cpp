// The table of rules, compared with the table of ops.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "autodiff/rule.h"
#include "graph/functions/lower.h"
#include "graph/op_registry.h"

using namespace tagflow;
using namespace tagflow::autodiff;

namespace {

// Ops that a walk does not ask the table about: the primitives of control flow,
// which have duals, and calls, which are lowered before it.
bool is_control_flow(const std::string& op) {
  static const std::set<std::string> kPrimitives = {
      "Switch",   "RefSwitch",     "_SwitchN",         "Merge",
      "RefMerge", "Enter",         "RefEnter",         "Exit",
      "RefExit",  "NextIteration", "RefNextIteration", "LoopCond"};
  return kPrimitives.contains(op) || graph::is_functional_op(op) ||
         op == "_Call";
}

std::vector<std::string> built_in_ops() {
  std::vector<std::string> ops;
  for (std::string& name : graph::OpRegistry::global().names())
    if (!name.starts_with("test_") && !name.starts_with("Test"))
      ops.push_back(std::move(name));
  return ops;
}

}  // namespace

TEST_CASE("each op has a rule, or a reason why it has none") {
  for (const std::string& op : built_in_ops()) {
    if (is_control_flow(op)) continue;
    const RuleEntry* entry = RuleTable::global().find(op);
    CHECK_MESSAGE(entry != nullptr, "nothing is said of op ", op);
    if (entry == nullptr) continue;
    CHECK_MESSAGE((entry->rule == nullptr) != entry->reason.empty(),
                  "a rule and a reason, or neither, for op ", op);
  }
}

TEST_CASE("each entry is of an op that there is") {
  for (const std::string& op : RuleTable::global().ops()) {
    if (op == "MyOp") continue;  // a rule that tests/autodiff/pages_test adds
    CHECK_MESSAGE(graph::OpRegistry::global().find_or_null(op) != nullptr,
                  "there is no op ", op);
  }
}
