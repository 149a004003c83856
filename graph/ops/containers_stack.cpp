// Stacks behind handles: StackV2 by resource, Stack by name.
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
}

}  // namespace tagflow::graph
