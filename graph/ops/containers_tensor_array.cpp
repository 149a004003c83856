// TensorArray: elements written once each, in any order, and read by index.
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

namespace {

Status array_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  return scalar_shape(c);
}

Status array_write_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return scalar_shape(c);
}

Status array_read_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return unknown_shape(c);
}

Status array_gather_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(1, 1));
  TAGFLOW_ASSIGN(const auto element, c.attr<PartialShape>("element_shape"));
  c.set_output(0, concatenate(indices, element));
  return {};
}

Status array_scatter_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(1, 1));
  TAGFLOW_ASSIGN(const PartialShape value, c.with_rank_at_least(2, 1));
  if (value.has_rank() && value.dim_known(0) && indices.dim_known(0) &&
      value.dim(0) != indices.dim(0))
    return c.fail(fmt::format("{} indices for a value of shape {}",
                              indices.dim(0), value.to_string()));
  return scalar_shape(c);
}

Status array_concat_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const auto rest,
                 c.attr<PartialShape>("element_shape_except0"));
  c.set_output(0, concatenate({PartialShape::kUnknown}, rest));
  c.set_output(1, {PartialShape::kUnknown});
  return {};
}

Status array_split_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(1, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  return scalar_shape(c);
}

Status array_grad_with_shape_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  return scalar_shape(c);
}

}  // namespace

void register_containers_tensor_array_ops(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("TensorArrayV3")
          .input("size: int32")
          .outputs({"handle: resource", "flow: float"})
          .attrs({"dtype: type", "element_shape: shape = <unknown>",
                  "dynamic_size: bool = false", "clear_after_read: bool = true",
                  "identical_element_shapes: bool = false",
                  "tensor_array_name: string = ''"})
          .stateful()
          .shape(array_shape)
          .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorArrayGradV3")
                   .inputs({"handle: resource", "flow_in: float"})
                   .outputs({"grad_handle: resource", "flow_out: float"})
                   .attr("source: string")
                   .stateful()
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorArrayGradWithShape")
                   .inputs({"handle: resource", "flow_in: float",
                            "shape_to_prepend: int32"})
                   .outputs({"grad_handle: resource", "flow_out: float"})
                   .attr("source: string")
                   .stateful()
                   .shape(array_grad_with_shape_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorArrayWriteV3")
                   .inputs({"handle: resource", "index: int32", "value: T",
                            "flow_in: float"})
                   .output("flow_out: float")
                   .attr("T: type")
                   .stateful()
                   .shape(array_write_shape)
                   .work(Work::kNoData));
  registry.add(
      OpDefBuilder("TensorArrayReadV3")
          .inputs({"handle: resource", "index: int32", "flow_in: float"})
          .output("value: dtype")
          .attr("dtype: type")
          .stateful()
          .shape(array_read_shape)
          .work(Work::kNoData));
  registry.add(
      OpDefBuilder("TensorArrayGatherV3")
          .inputs({"handle: resource", "indices: int32", "flow_in: float"})
          .output("value: dtype")
          .attrs({"dtype: type", "element_shape: shape = <unknown>"})
          .stateful()
          .shape(array_gather_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("TensorArrayScatterV3")
                   .inputs({"handle: resource", "indices: int32", "value: T",
                            "flow_in: float"})
                   .output("flow_out: float")
                   .attr("T: type")
                   .stateful()
                   .shape(array_scatter_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("TensorArrayConcatV3")
          .inputs({"handle: resource", "flow_in: float"})
          .outputs({"value: dtype", "lengths: int64"})
          .attrs({"dtype: type", "element_shape_except0: shape = <unknown>"})
          .stateful()
          .shape(array_concat_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("TensorArraySplitV3")
                   .inputs({"handle: resource", "value: T", "lengths: int64",
                            "flow_in: float"})
                   .output("flow_out: float")
                   .attr("T: type")
                   .stateful()
                   .shape(array_split_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("TensorArraySizeV3")
                   .inputs({"handle: resource", "flow_in: float"})
                   .output("size: int32")
                   .stateful()
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorArrayCloseV3")
                   .input("handle: resource")
                   .stateful()
                   .shape(no_output_shape)
                   .work(Work::kNoData));
}

}  // namespace tagflow::graph
