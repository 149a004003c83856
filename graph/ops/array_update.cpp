// Ops that replace rows and slices of tensors: Empty, Inplace*,
// TensorStridedSliceUpdate.
#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

Status empty_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(0));
  c.set_output(0, std::move(shape));
  return {};
}

// As many rows of x as there are indices.
Status inplace_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape x, c.with_rank_at_least(0, 1));
  TAGFLOW_ASSIGN(const PartialShape i, c.with_rank(1, 1));
  if (x.has_rank()) {
    const PartialShape wanted = concatenate(i, sub_shape(x, 1, x.rank()));
    if (!wanted.compatible(c.input(2)))
      return c.fail(fmt::format("v should be {} for i {} and x {}, not {}",
                                wanted.to_string(), i.to_string(),
                                x.to_string(), c.input(2).to_string()));
  }
  return unchanged_shape(c);
}

}  // namespace

void register_array_update_ops(OpRegistry& registry) {
  // Stateful in TensorFlow, but here its elements are always zeros.
  registry.add(OpDefBuilder("Empty")
                   .input("shape: int32")
                   .output("output: dtype")
                   .attrs({"dtype: type", "init: bool = false"})
                   .shape(empty_shape));
  for (const char* name : {"InplaceUpdate", "InplaceAdd", "InplaceSub"})
    registry.add(OpDefBuilder(name)
                     .inputs({"x: T", "i: int32", "v: T"})
                     .output("y: T")
                     .attr("T: type")
                     .shape(inplace_shape));
  registry.add(
      OpDefBuilder("TensorStridedSliceUpdate")
          .inputs({"input: T", "begin: Index", "end: Index", "strides: Index",
                   "value: T"})
          .output("output: T")
          .attrs({"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
                  "end_mask: int = 0", "ellipsis_mask: int = 0",
                  "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"})
          .shape(unchanged_shape));
}

}  // namespace tagflow::graph
