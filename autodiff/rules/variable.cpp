// Reads of variables, by handle and by reference. The gradient of a variable is
// that of its value.
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/rules.h"

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

void resource_gather_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const auto batch_dims = r.attr<int64_t>("batch_dims");
  if (batch_dims == 0) return set_gathered_rows(r);
  const Output axis = ops::constant(s, batch_dims);
  r.set(0, gather_gradient(s, r.grad(), r.input(1),
                           r.input_shape(0, DataType::kInt64), {axis, axis}));
}

}  // namespace

void add_state_rules(RuleTable& table) {
  table.add({"ReadVariableOp", "RefIdentity", "_Dereference",
             "DestroyTemporaryVariable"},
            [](RuleContext& r) { r.set(0, r.slices()); });
  table.add("RefSelect", ref_select_rule);
  table.add("ResourceGather", resource_gather_rule);
  table.add("ResourceGatherNd",
            [](RuleContext& r) { set_gathered_vectors(r); });
}

}  // namespace tagflow::autodiff
