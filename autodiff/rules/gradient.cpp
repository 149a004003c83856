// Gradients of containers have gradients, of the same kinds: Note [Gradients of
// containers].
#include "autodiff/rules/containers.h"

namespace tagflow::autodiff {
namespace {

void gradient_add_rule(RuleContext& r) {
  r.set(0, r.grad());
  if (r.wants(2)) r.set(2, gradient_at(r, r.grad(), r.input(1), 2));
}

void gradient_get_rule(RuleContext& r) {
  r.set(0, one_gradient(r, r.input(1), r.grad()));
}

// Where the gradient of the value is not wanted, it may be an empty variant,
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

}  // namespace

void add_container_gradient_rules(RuleTable& table) {
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

}  // namespace tagflow::autodiff
