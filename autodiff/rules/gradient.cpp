// Ops that only gradients have: of element-wise functions, of stacks, and of
// containers, which have gradients of the same kinds (Note [Gradients of
// containers]).
#include "autodiff/rule.h"
#include "autodiff/rules/containers.h"

namespace tagflow::autodiff {
namespace {

// --- Gradients of element-wise functions ------------------------------------

// z = dy f(y), or dy f(conj(y)): SigmoidGrad and TanhGrad take y as it is, the
// others conjugate it. Either way the op itself, of conj(y), gives the gradient
// of dy.
void set_upstream(RuleContext& r) {
  if (!r.wants(1)) return;
  r.set(1, r.scope().op(r.node().op(), {r.conj(r.input(0)), r.grad()}));
}

// The slope (1 + |x|)^-2 has the derivative -2 sign(x) (1 + |x|)^-3.
void softsign_grad_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0)) r.set(0, s.op("SoftsignGrad", {r.grad(), r.input(1)}));
  if (!r.wants(1)) return;
  const Output x = r.input(1);
  const Output change = ops::real_div(s, ops::mul(s, ops::sign(s, x), -2),
                                      ops::add(s, ops::abs(s, x), 1));
  const Output sloped =
      s.op("SoftsignGrad", {ops::mul(s, r.grad(), r.input(0)), x});
  r.set(1, ops::mul(s, sloped, change));
}

// `x` times the gradient z of dz: 0 where that is 0, even if x is not finite.
Output times_upstream(RuleContext& r, const Output& x) {
  return r.scope().op("MulNoNan", {x, r.conj(r.grad())});
}

// The op is 0 where dy is 0, and so are the gradients by y of those below.
void add_unary_gradient_rules(RuleTable& table) {
  table.add("SigmoidGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    const Output slope = ops::sub(s, 1, ops::mul(s, r.input(0), 2));
    set_by_slope(r, ops::mul(s, r.input(1), slope));
  });
  table.add("TanhGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    set_by_slope(r, ops::mul(s, ops::mul(s, r.input(0), r.input(1)), -2));
  });
  // z = dy / 2w with w = conj(y): conj(dz) z' = -conj(dz) z / w.
  table.add("SqrtGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    const Output w = r.conj(r.input(0));
    const Output ratio = s.op("MulNoNan", {ops::reciprocal(s, w), r.output()});
    r.set(0, ops::neg(s, times_upstream(r, ratio)));
  });
  // z = -dy w^3 / 2: conj(dz) z' = -3/2 conj(dz) dy w^2.
  table.add("RsqrtGrad", [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    // Not of w^2, whose own gradient of 0 would be multiplied by w.
    const Output w = r.conj(r.input(0));
    const Output slope =
        s.op("MulNoNan", {w, s.op("MulNoNan", {w, r.input(1)})});
    r.set(0, times_upstream(r, ops::mul(s, slope, -1.5)));
  });
  // z = -dy w^2: conj(dz) z' = -2 conj(dz) dy w.
  table.add({"ReciprocalGrad", "InvGrad"}, [](RuleContext& r) {
    const Scope& s = r.scope();
    set_upstream(r);
    if (!r.wants(0)) return;
    const Output w = r.conj(r.input(0));
    const Output slope = s.op("MulNoNan", {w, r.input(1)});
    r.set(0, times_upstream(r, ops::mul(s, slope, -2)));
  });
  table.add("SoftsignGrad", softsign_grad_rule);
}

// --- Stacks -----------------------------------------------------------------

AttrMap element_type_of(RuleContext& r) {
  const char* name = r.node().op() == "PersistentStackPush" ? "T" : "elem_type";
  return {{"elem_type", r.attr<DataType>(name)}};
}

void persistent_push_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (!r.wants(1)) {
    r.set(0, s.op("PersistentStackDrop", {r.grad()}, element_type_of(r)));
    return;
  }
  const graph::OpResult popped =
      s.op("PersistentStackPopOrZero", {r.grad(), r.input_shape(1)},
           element_type_of(r));
  r.set(0, popped[0]);
  r.set(1, popped[1]);
}

void persistent_pop_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.has_grad(1))
    r.set(0, s.op("PersistentStackPush", {r.grad(0), r.grad(1)}));
  else
    r.set(0, s.op("PersistentStackPushZero", {r.grad(0)}, element_type_of(r)));
}

void persistent_push_zero_rule(RuleContext& r) {
  r.set(0, r.scope().op("PersistentStackDrop", {r.grad()}, element_type_of(r)));
}

void persistent_drop_rule(RuleContext& r) {
  r.set(0, r.scope().op("PersistentStackPushZero", {r.grad()},
                        element_type_of(r)));
}

void add_persistent_stack_rules(RuleTable& table) {
  table.add("PersistentStackPush", persistent_push_rule);
  table.add({"PersistentStackPop", "PersistentStackPopOrZero"},
            persistent_pop_rule);
  table.add("PersistentStackPushZero", persistent_push_zero_rule);
  table.add("PersistentStackDrop", persistent_drop_rule);
  table.add_none({"PersistentStack", "ZeroVariant"}, "it has no elements");
  table.add_none({"PersistentStackSize"}, "its result is a number of elements");
}

// --- Gradients of containers ------------------------------------------------

void gradient_add_rule(RuleContext& r) {
  r.set(0, r.grad());
  if (r.wants(2)) r.set(2, gradient_at(r, r.grad(), r.input(1), 2));
}

void gradient_get_rule(RuleContext& r) {
  r.set(0, one_gradient(r, r.input(1), r.grad()));
}

// If the gradient of the value is not wanted, it may be an empty variant,
// which only clears the place.
void gradient_put_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (!r.wants(2)) {
    r.set(0, s.op("GradientListPut", {r.grad(), r.input(1), no_gradients(s)}));
    return;
  }
  const graph::OpResult taken =
      s.op("GradientListTake", {r.grad(), r.input(1), r.input_shape(2)},
           {{"T", r.input_dtype(2)}});
  r.set(0, taken[0]);
  r.set(2, taken[1]);
}

// The taken element is not in the remaining list, so the gradient of the list
// has no effect there.
void gradient_take_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output value = r.has_grad(1) ? r.grad(1) : no_gradients(s);
  r.set(0, s.op("GradientListPut", {r.grad(0), r.input(1), value}));
}

void gradient_drop_rule(RuleContext& r) {
  r.set(0,
        r.scope().op("GradientListDrop", {r.grad(), r.input(1), r.input(2)}));
}

void gradient_add_rows_rule(RuleContext& r) {
  r.set(0, r.grad());
  if (r.wants(2)) r.set(2, gradient_rows_at(r, r.grad(), r.input(1), 2));
}

void gradient_get_rows_rule(RuleContext& r) {
  r.set(0, row_gradients(r, r.input(1), r.grad()));
}

void gradient_put_rows_rule(RuleContext& r) {
  r.set(0, taken_gradient_rows(r, r.input(1), 2, 0));
}

void gradient_take_rows_rule(RuleContext& r) {
  r.set(0, r.scope().op("GradientListPutRows",
                        {r.grad(0), r.input(1), r.grad(1)}));
}

void gradient_add_split_rule(RuleContext& r) {
  r.set(0, r.grad());
  if (r.wants(1)) r.set(1, gradient_parts(r, r.grad(), r.input(2), 1));
}

void gradient_get_concat_rule(RuleContext& r) {
  r.set(0, part_gradients(r, r.grad(), r.input(1)));
}

void gradient_put_batch_rule(RuleContext& r) {
  r.set(0, taken_gradient_rows(r, r.input(1), 2, 0, "GradientListTakeBatch"));
}

void gradient_take_batch_rule(RuleContext& r) {
  r.set(0, r.scope().op("GradientListPutBatch",
                        {r.grad(0), r.input(1), r.grad(1)}));
}

void gradient_split_rule(RuleContext& r) {
  r.set(0,
        r.scope().op("GradientListJoin", {r.grad(0), r.grad(1), r.input(1)}));
}

void gradient_join_rule(RuleContext& r) {
  const graph::OpResult parts =
      r.scope().op("GradientListSplit", {r.grad(), r.input(2)});
  r.set(0, parts[0]);
  r.set(1, parts[1]);
}

void add_gradient_list_rules(RuleTable& table) {
  table.add("GradientListAdd", gradient_add_rule);
  table.add("GradientListGet", gradient_get_rule);
  table.add("GradientListPut", gradient_put_rule);
  table.add("GradientListTake", gradient_take_rule);
  table.add("GradientListDrop", gradient_drop_rule);
  table.add("GradientListAddRows", gradient_add_rows_rule);
  table.add("GradientListGetRows", gradient_get_rows_rule);
  table.add("GradientListPutRows", gradient_put_rows_rule);
  table.add("GradientListTakeRows", gradient_take_rows_rule);
  table.add("GradientListAddSplit", gradient_add_split_rule);
  table.add("GradientListGetConcat", gradient_get_concat_rule);
  table.add("GradientListPutBatch", gradient_put_batch_rule);
  table.add("GradientListTakeBatch", gradient_take_batch_rule);
  table.add("GradientListSplit", gradient_split_rule);
  table.add("GradientListJoin", gradient_join_rule);
}

}  // namespace

void add_gradient_rules(RuleTable& table) {
  add_unary_gradient_rules(table);
  add_persistent_stack_rules(table);
  add_gradient_list_rules(table);
}

}  // namespace tagflow::autodiff
