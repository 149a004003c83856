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
  define_stateful(
      registry, "TensorArrayV3", {"size: int32"},
      {"handle: resource", "flow: float"},
      {"dtype: type", "element_shape: shape = <unknown>",
       "dynamic_size: bool = false", "clear_after_read: bool = true",
       "identical_element_shapes: bool = false",
       "tensor_array_name: string = ''"},
      array_shape, Work::kNoData);
  define_stateful(registry, "TensorArrayGradV3",
                  {"handle: resource", "flow_in: float"},
                  {"grad_handle: resource", "flow_out: float"},
                  {"source: string"}, scalar_shape, Work::kNoData);
  define_stateful(
      registry, "TensorArrayGradWithShape",
      {"handle: resource", "flow_in: float", "shape_to_prepend: int32"},
      {"grad_handle: resource", "flow_out: float"}, {"source: string"},
      array_grad_with_shape_shape, Work::kNoData);
  define_stateful(
      registry, "TensorArrayWriteV3",
      {"handle: resource", "index: int32", "value: T", "flow_in: float"},
      {"flow_out: float"}, {"T: type"}, array_write_shape, Work::kNoData);
  define_stateful(registry, "TensorArrayReadV3",
                  {"handle: resource", "index: int32", "flow_in: float"},
                  {"value: dtype"}, {"dtype: type"}, array_read_shape,
                  Work::kNoData);
  define_stateful(registry, "TensorArrayGatherV3",
                  {"handle: resource", "indices: int32", "flow_in: float"},
                  {"value: dtype"},
                  {"dtype: type", "element_shape: shape = <unknown>"},
                  array_gather_shape, Work::kMove);
  define_stateful(
      registry, "TensorArrayScatterV3",
      {"handle: resource", "indices: int32", "value: T", "flow_in: float"},
      {"flow_out: float"}, {"T: type"}, array_scatter_shape, Work::kMove);
  define_stateful(registry, "TensorArrayConcatV3",
                  {"handle: resource", "flow_in: float"},
                  {"value: dtype", "lengths: int64"},
                  {"dtype: type", "element_shape_except0: shape = <unknown>"},
                  array_concat_shape, Work::kMove);
  define_stateful(
      registry, "TensorArraySplitV3",
      {"handle: resource", "value: T", "lengths: int64", "flow_in: float"},
      {"flow_out: float"}, {"T: type"}, array_split_shape, Work::kMove);
  define_stateful(registry, "TensorArraySizeV3",
                  {"handle: resource", "flow_in: float"}, {"size: int32"}, {},
                  scalar_shape, Work::kNoData);
  define_stateful(registry, "TensorArrayCloseV3", {"handle: resource"}, {}, {},
                  no_output_shape, Work::kNoData);
}

}  // namespace tagflow::graph
