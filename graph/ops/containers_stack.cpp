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
  registry.add(OpDefBuilder("StackV2")
                   .input("max_size: int32")
                   .output("handle: resource")
                   .attrs({"elem_type: type", "stack_name: string = ''"})
                   .stateful()
                   .shape(stack_v2_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("StackPushV2")
                   .inputs({"handle: resource", "elem: T"})
                   .output("output: T")
                   .attrs({"T: type", "swap_memory: bool = false"})
                   .stateful()
                   .shape(push_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("StackPopV2")
                   .input("handle: resource")
                   .output("elem: elem_type")
                   .attr("elem_type: type")
                   .stateful()
                   .shape(unknown_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("StackCloseV2")
                   .input("handle: resource")
                   .stateful()
                   .shape(no_output_shape)
                   .work(Work::kNoData));

  registry.add(OpDefBuilder("Stack")
                   .output("handle: Ref(string)")
                   .attrs({"elem_type: type", "stack_name: string = ''"})
                   .stateful()
                   .shape(legacy_stack_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("StackPush")
                   .inputs({"handle: Ref(string)", "elem: T"})
                   .output("output: T")
                   .attrs({"T: type", "swap_memory: bool = false"})
                   .stateful()
                   .shape(push_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("StackPop")
                   .input("handle: Ref(string)")
                   .output("elem: elem_type")
                   .attr("elem_type: type")
                   .stateful()
                   .shape(unknown_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("StackClose")
                   .input("handle: Ref(string)")
                   .stateful()
                   .shape(no_output_shape)
                   .work(Work::kNoData));
}

}  // namespace tagflow::graph
