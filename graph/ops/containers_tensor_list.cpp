// TensorList: lists of tensors as values; an op returns a changed copy. The
// elements of a list are known at run time only.
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

namespace {

// A list made from an element shape, input `shape`, and a scalar.
Status new_list_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(element_shape_input(c, 0).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return scalar_shape(c);
}

Status push_batch_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape lists, c.with_rank(0, 1));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(1, 1).status());
  c.set_output(0, std::move(lists));
  return {};
}

Status pop_back_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(element_shape_input(c, 1).status());
  c.set_output(0, PartialShape::scalar());
  return {};
}

Status set_item_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return scalar_shape(c);
}

// An element may have another shape than the input, which applies to unset
// elements.
Status get_item_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  TAGFLOW_RETURN_IF_ERROR(element_shape_input(c, 2).status());
  return unknown_shape(c);
}

Status list_stack_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t count, c.attr<int64_t>("num_elements"));
  TAGFLOW_ASSIGN(const PartialShape element, element_shape_input(c, 1));
  c.set_output(
      0, concatenate({count < 0 ? PartialShape::kUnknown : count}, element));
  return {};
}

Status list_gather_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape element, element_shape_input(c, 2));
  const PartialShape& indices = c.input(1);
  c.set_output(0, concatenate({indices.num_elements()}, element));
  return {};
}

Status resize_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return scalar_shape(c);
}

Status list_from_tensor_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(element_shape_input(c, 1).status());
  return scalar_shape(c);
}

// Distributes rows of a tensor by indices; ScatterV2 gives the list's length.
Status list_scatter_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(element_shape_input(c, 2).status());
  if (c.num_inputs() > 3) TAGFLOW_RETURN_IF_ERROR(c.with_rank(3, 0).status());
  return scalar_shape(c);
}

Status scatter_into_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(1, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  return scalar_shape(c);
}

// The concatenated elements: all dimensions of an element but the first are
// known.
Status list_concat_shape(ShapeContext& c) {
  PartialShape element;
  if (c.num_inputs() > 1) {
    TAGFLOW_ASSIGN(element, element_shape_input(c, 1));
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  } else {
    TAGFLOW_ASSIGN(element, c.attr<PartialShape>("element_shape"));
  }
  // Scalars cannot be concatenated: the kernel reports it.
  if (element.has_rank() && element.rank() > 0) {
    element.set_dim(0, PartialShape::kUnknown);
    c.set_output(0, std::move(element));
  }
  c.set_output(1, {PartialShape::kUnknown});
  return {};
}

Status list_split_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(element_shape_input(c, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  return scalar_shape(c);
}

Status concat_lists_shape(ShapeContext& c) {
  auto merged = c.input(0).merge(c.input(1));
  if (!merged.ok())
    return c.fail(fmt::format("shapes of the inputs differ: {} and {}",
                              c.input(0).to_string(), c.input(1).to_string()));
  c.set_output(0, std::move(*merged));
  return {};
}

}  // namespace

void register_containers_tensor_list_ops(OpRegistry& registry) {
  const auto shape_type = "shape_type: {int32, int64}";
  const auto element_dtype = "element_dtype: type";
  for (const char* op : {"EmptyTensorList", "TensorListReserve"})
    define(registry, op,
           {"element_shape: shape_type",
            op[0] == 'E' ? "max_num_elements: int32" : "num_elements: int32"},
           {"handle: variant"}, {element_dtype, shape_type}, new_list_shape,
           Work::kNoData);
  define_changing(registry, "TensorListPushBack",
                  {"input_handle: variant", "tensor: element_dtype"},
                  {"output_handle: variant"}, {element_dtype}, scalar_shape,
                  Work::kNoData);
  define_changing(registry, "TensorListPushBackBatch",
                  {"input_handles: variant", "tensor: element_dtype"},
                  {"output_handles: variant"}, {element_dtype},
                  push_batch_shape);
  define_changing(registry, "TensorListPopBack",
                  {"input_handle: variant", "element_shape: int32"},
                  {"output_handle: variant", "tensor: element_dtype"},
                  {element_dtype}, pop_back_shape, Work::kNoData);
  define(registry, "TensorListLength", {"input_handle: variant"},
         {"length: int32"}, {}, scalar_shape, Work::kNoData);
  // For each list in a tensor of lists.
  define(registry, "TensorListLengths", {"input_handles: variant"},
         {"lengths: int32"}, {}, unchanged_shape, Work::kNoData);
  define(registry, "TensorListElementShape", {"input_handle: variant"},
         {"element_shape: shape_type"}, {shape_type}, unknown_shape,
         Work::kNoData);
  define_changing(registry, "TensorListResize",
                  {"input_handle: variant", "size: int32"},
                  {"output_handle: variant"}, {}, resize_shape, Work::kNoData);
  define_changing(
      registry, "TensorListSetItem",
      {"input_handle: variant", "index: int32", "item: element_dtype"},
      {"output_handle: variant"},
      {element_dtype, "resize_if_index_out_of_bounds: bool = false"},
      set_item_shape, Work::kNoData);
  define(registry, "TensorListGetItem",
         {"input_handle: variant", "index: int32", "element_shape: Tshape"},
         {"item: element_dtype"},
         {element_dtype, "Tshape: {int32, int64} = int32"}, get_item_shape,
         Work::kNoData);
  define(registry, "TensorListStack",
         {"input_handle: variant", "element_shape: int32"},
         {"tensor: element_dtype"}, {element_dtype, "num_elements: int = -1"},
         list_stack_shape, Work::kMove);
  define(registry, "TensorListGather",
         {"input_handle: variant", "indices: int32", "element_shape: int32"},
         {"values: element_dtype"}, {element_dtype}, list_gather_shape,
         Work::kMove);
  define(registry, "TensorListFromTensor",
         {"tensor: element_dtype", "element_shape: shape_type"},
         {"output_handle: variant"}, {element_dtype, shape_type},
         list_from_tensor_shape, Work::kMove);
  define(
      registry, "TensorListScatter",
      {"tensor: element_dtype", "indices: int32", "element_shape: shape_type"},
      {"output_handle: variant"}, {element_dtype, shape_type},
      list_scatter_shape);
  define(registry, "TensorListScatterV2",
         {"tensor: element_dtype", "indices: int32",
          "element_shape: shape_type", "num_elements: int32"},
         {"output_handle: variant"}, {element_dtype, shape_type},
         list_scatter_shape);
  define_changing(
      registry, "TensorListScatterIntoExistingList",
      {"input_handle: variant", "tensor: element_dtype", "indices: int32"},
      {"output_handle: variant"}, {element_dtype}, scatter_into_shape);
  define(registry, "TensorListConcat", {"input_handle: variant"},
         {"tensor: element_dtype", "lengths: int64"},
         {element_dtype, "element_shape: shape = <unknown>"}, list_concat_shape,
         Work::kMove);
  define(registry, "TensorListConcatV2",
         {"input_handle: variant", "element_shape: shape_type",
          "leading_dims: int64"},
         {"tensor: element_dtype", "lengths: int64"},
         {element_dtype, shape_type}, list_concat_shape, Work::kMove);
  define(
      registry, "TensorListSplit",
      {"tensor: element_dtype", "element_shape: shape_type", "lengths: int64"},
      {"output_handle: variant"}, {element_dtype, shape_type},
      list_split_shape);
  define_changing(registry, "TensorListConcatLists",
                  {"input_a: variant", "input_b: variant"}, {"output: variant"},
                  {element_dtype}, concat_lists_shape);
}

}  // namespace tagflow::graph
