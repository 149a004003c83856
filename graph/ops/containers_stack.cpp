// Stacks: mutable ones behind handles (StackV2 by resource, Stack by name),
// and persistent ones, which are values.
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

namespace {

Status stack_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  return scalar_shape(c);
}

Status legacy_stack_shape(ShapeContext& c) {
  c.set_output(0, {2});
  return {};
}

Status push_shape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return {};
}

Status persistent_pop_shape(ShapeContext& c) {
  c.set_output(0, PartialShape::scalar());
  TAGFLOW_ASSIGN(PartialShape element, c.attr<PartialShape>("elem_shape"));
  c.set_output(1, std::move(element));
  return {};
}

// The shape is not needed for a variant, which may be missing.
Status persistent_pop_or_zero_shape(ShapeContext& c) {
  c.set_output(0, PartialShape::scalar());
  if (c.node().output_dtypes()[1] == DataType::kVariant) {
    c.set_output(1, PartialShape::scalar());
    return {};
  }
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(1));
  c.set_output(1, std::move(shape));
  return {};
}

}  // namespace

void register_containers_stack_ops(OpRegistry& registry) {
  define_stateful(registry, "StackV2", {"max_size: int32"},
                  {"handle: resource"},
                  {"elem_type: type", "stack_name: string = ''"},
                  stack_v2_shape, Work::kNoData);
  define_stateful(registry, "StackPushV2", {"handle: resource", "elem: T"},
                  {"output: T"}, {"T: type", "swap_memory: bool = false"},
                  push_shape, Work::kNoData);
  define_stateful(registry, "StackPopV2", {"handle: resource"},
                  {"elem: elem_type"}, {"elem_type: type"}, unknown_shape,
                  Work::kNoData);
  define_stateful(registry, "StackCloseV2", {"handle: resource"}, {}, {},
                  no_output_shape, Work::kNoData);

  define_stateful(registry, "Stack", {}, {"handle: Ref(string)"},
                  {"elem_type: type", "stack_name: string = ''"},
                  legacy_stack_shape, Work::kNoData);
  define_stateful(registry, "StackPush", {"handle: Ref(string)", "elem: T"},
                  {"output: T"}, {"T: type", "swap_memory: bool = false"},
                  push_shape, Work::kNoData);
  define_stateful(registry, "StackPop", {"handle: Ref(string)"},
                  {"elem: elem_type"}, {"elem_type: type"}, unknown_shape,
                  Work::kNoData);
  define_stateful(registry, "StackClose", {"handle: Ref(string)"}, {}, {},
                  no_output_shape, Work::kNoData);

  define(registry, "PersistentStack", {}, {"handle: variant"},
         {"elem_type: type"}, scalar_shape, Work::kNoData);
  define_changing(registry, "PersistentStackPush",
                  {"handle: variant", "elem: T"}, {"output: variant"},
                  {"T: type"}, scalar_shape, Work::kNoData);
  define_changing(registry, "PersistentStackPop", {"handle: variant"},
                  {"output: variant", "elem: elem_type"},
                  {"elem_type: type", "elem_shape: shape = <unknown>"},
                  persistent_pop_shape, Work::kNoData);
  // For stacks of gradients, aligned at the top. An empty variant has no
  // elements, and missing elements are zeros: Push and PopOrZero are the
  // derivatives of each other, and so are PushZero and Drop.
  define_changing(registry, "PersistentStackPushZero", {"handle: variant"},
                  {"output: variant"}, {"elem_type: type"}, scalar_shape,
                  Work::kNoData);
  define_changing(registry, "PersistentStackPopOrZero",
                  {"handle: variant", "shape: Tshape"},
                  {"output: variant", "elem: elem_type"},
                  {"elem_type: type", "Tshape: {int32, int64} = int32"},
                  persistent_pop_or_zero_shape, Work::kNoData);
  define_changing(registry, "PersistentStackDrop", {"handle: variant"},
                  {"output: variant"}, {"elem_type: type"}, scalar_shape,
                  Work::kNoData);
  define(registry, "PersistentStackSize", {"handle: variant"}, {"size: int64"},
         {}, scalar_shape, Work::kNoData);
}

}  // namespace tagflow::graph
