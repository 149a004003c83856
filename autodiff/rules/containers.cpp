// Stacks and optionals, and what all containers share.
#include "autodiff/rules/containers.h"

#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

bool knows_rows(const PartialShape& shape) {
  return shape.has_rank() && shape.rank() > 0 && shape.dim_known(0);
}

}  // namespace

Output input_row_indices(RuleContext& r, int i) {
  const PartialShape& known = r.known_input_shape(i);
  return ops::range(r.scope(), 0,
                    knows_rows(known)
                        ? graph::Input(known.dim(0))
                        : ops::gather(r.scope(), r.input_shape(i), 0),
                    1);
}

Output input_row_shape(RuleContext& r, int i) {
  const PartialShape& known = r.known_input_shape(i);
  if (known.has_rank() && known.rank() > 0) {
    const auto rest = known.dims().subspan(1);
    if (PartialShape(rest).fully_known())
      return r.ints({rest.begin(), rest.end()});
  }
  return ops::slice(r.scope(), r.input_shape(i), {1}, {-1});
}

Output gradient_row_indices(RuleContext& r) {
  const Scope& s = r.scope();
  const PartialShape& known = r.known_output_shape();
  return ops::range(s, 0,
                    knows_rows(known)
                        ? graph::Input(known.dim(0))
                        : ops::gather(s, ops::shape(s, r.grad()), 0),
                    1);
}

Output one_gradient(RuleContext& r, const graph::Input& index,
                    const Output& value) {
  const Scope& s = r.scope();
  return s.op("GradientListAdd", {no_gradients(s), index, value});
}

Output row_gradients(RuleContext& r, const Output& indices,
                     const Output& values) {
  const Scope& s = r.scope();
  return s.op("GradientListAddRows", {no_gradients(s), indices, values});
}

Output part_gradients(RuleContext& r, const Output& values,
                      const Output& lengths) {
  const Scope& s = r.scope();
  return s.op("GradientListAddSplit", {no_gradients(s), values, lengths});
}

Output gradient_at(RuleContext& r, const Output& gradients,
                   const graph::Input& index, int i) {
  return r.scope().op("GradientListGet", {gradients, index, r.input_shape(i)},
                      {{"T", r.input_dtype(i)}});
}

Output gradient_rows_at(RuleContext& r, const Output& gradients,
                        const Output& indices, int i) {
  return r.scope().op("GradientListGetRows",
                      {gradients, indices, input_row_shape(r, i)},
                      {{"T", r.input_dtype(i)}});
}

Output gradient_parts(RuleContext& r, const Output& gradients,
                      const Output& lengths, int i) {
  return r.scope().op("GradientListGetConcat",
                      {gradients, lengths, input_row_shape(r, i)},
                      {{"T", r.input_dtype(i)}});
}

Output taken_gradient(RuleContext& r, const graph::Input& index, int value,
                      int container) {
  const Scope& s = r.scope();
  if (!r.wants(container)) {
    r.set(value, gradient_at(r, r.grad(), index, value));
    return {};
  }
  if (!r.wants(value))
    return s.op("GradientListPut", {r.grad(), index, no_gradients(s)});
  const graph::OpResult taken =
      s.op("GradientListTake", {r.grad(), index, r.input_shape(value)},
           {{"T", r.input_dtype(value)}});
  r.set(value, taken[1]);
  return taken[0];
}

Output taken_gradient_rows(RuleContext& r, const Output& indices, int value,
                           int container, const char* take) {
  const graph::OpResult taken =
      r.scope().op(take, {r.grad(), indices, input_row_shape(r, value)},
                   {{"T", r.input_dtype(value)}});
  r.set(value, taken[1]);
  return r.wants(container) ? taken[0] : Output();
}

namespace {

// Element i of an optional is its component i.
void optional_from_value_rule(RuleContext& r) {
  for (int i = 0; i < r.num_inputs(); ++i)
    if (r.wants(i)) r.set(i, gradient_at(r, r.grad(), i, i));
}

void optional_get_value_rule(RuleContext& r) {
  const Scope& s = r.scope();
  Output gradients = no_gradients(s);
  for (int port = 0; port < r.num_outputs(); ++port)
    if (r.has_grad(port))
      gradients = s.op("GradientListAdd", {gradients, port, r.grad(port)});
  r.set(0, gradients);
}

void tensor_map_rule(RuleContext& r) {
  r.fail("gradients of maps are not implemented");
}

}  // namespace

void add_containers_rules(RuleTable& table) {
  // Stacks that lead from an x to a y were replaced: Note [Mutable stacks].
  table.add({"StackPush", "StackPushV2"},
            [](RuleContext& r) { r.set(1, r.slices()); });
  table.add_none({"Stack", "StackV2", "StackPop", "StackPopV2", "StackClose",
                  "StackCloseV2"},
                 "no edge leads from what was pushed to it");
  table.add("OptionalFromValue", optional_from_value_rule);
  table.add("OptionalGetValue", optional_get_value_rule);
  table.add_none({"OptionalNone"}, "it has no value");
  table.add_none({"OptionalHasValue", "TensorMapHasKey"},
                 "its result is true or false");
  table.add_none({"EmptyTensorMap"}, "it has no elements");
  table.add_none({"TensorMapSize"}, "its result is a number of elements");
  table.add({"TensorMapLookup", "TensorMapInsert", "TensorMapErase",
             "TensorMapStackKeys"},
            tensor_map_rule);
  no_gradient(table, "DeviceIndex FakeParam", "it has no inputs");
  add_list_rules(table);
  add_array_container_rules(table);
}

}  // namespace tagflow::autodiff
