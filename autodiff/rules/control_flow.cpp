// Ops that hand values on or check them, and those that have no inputs or no
// outputs. Calls are in control_flow_call.cpp; the primitives of control flow
// have duals instead of rules (Note [The walk] in autodiff/backprop.h).
#include <fmt/format.h>

#include "autodiff/rule.h"
#include "autodiff/rules/arithmetic.h"
#include "autodiff/rules/control_flow_call.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

// Only the selected input gets the gradient.
void ref_select_rule(RuleContext& r) {
  const Scope& s = r.scope();
  for (int i = 1; i < r.num_inputs(); ++i) {
    if (!r.wants(i)) continue;
    const Output is_it = ops::equal(s, r.input(0), i - 1);
    r.set(i, s.op("Select", {is_it, r.grad(), r.zeros_like_input(i)}));
  }
}

void add_identity_rules(RuleTable& table) {
  table.add({"Identity", "Snapshot", "Print", "EnsureShape", "GuaranteeConst",
             "PlaceholderWithDefault", "RefIdentity"},
            [](RuleContext& r) { r.set(0, r.slices()); });
  table.add("IdentityN", [](RuleContext& r) {
    for (int i = 0; i < r.num_inputs(); ++i) r.set(i, r.slices(i));
  });
  table.add("PreventGradient", [](RuleContext& r) {
    const auto message = r.attr<std::string>("message");
    r.fail(message.empty() ? "it is there to prevent one" : message);
  });
  table.add({"CheckNumerics", "CheckNumericsV2"}, [](RuleContext& r) {
    const auto message =
        fmt::format("in the gradient of what is checked as: {}",
                    r.attr<std::string>("message"));
    r.set(0, r.scope().op(r.node().op(), {r.grad()}, {{"message", message}}));
  });
  table.add("RefSelect", ref_select_rule);
}

void add_control_flow_reasons(RuleTable& table) {
  no_gradient(table,
              "Abort Const ControlTrigger NoOp Placeholder PlaceholderV2 _Arg",
              "it has no inputs");
  no_gradient(table, "Assert PrintV2 _HostSend _Retval _Send",
              "it has no outputs");
  no_gradient(table, "_HostRecv _Recv", "what it gives comes from elsewhere");
  no_gradient(table, "StopGradient", "it is there to stop gradients");
  no_gradient(table, "_ForTripCount", "its results are indices or counts");
}

// --- Forward mode -----------------------------------------------------------

void hand_on(ForwardContext& r) {
  for (int i = 0; i < r.num_inputs() && i < r.num_outputs(); ++i)
    if (r.has_tangent(i)) r.set(i, r.tangent(i));
}

void add_control_flow_forward_rules(RuleTable& table) {
  table.add_forward({"Identity", "Snapshot", "Print", "EnsureShape",
                     "GuaranteeConst", "PlaceholderWithDefault", "RefIdentity"},
                    hand_on_first);
  table.add_forward({"IdentityN"}, hand_on);
  table.add_forward({"CheckNumerics", "CheckNumericsV2"}, symmetric);
}

}  // namespace

void add_control_flow_rules(RuleTable& table) {
  add_call_rules(table);
  add_identity_rules(table);
  add_control_flow_reasons(table);
  add_control_flow_forward_rules(table);
}

}  // namespace tagflow::autodiff
