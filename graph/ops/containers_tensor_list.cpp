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

Status resize_list_shape(ShapeContext& c) {
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
    registry.add(OpDefBuilder(op)
                     .inputs({"element_shape: shape_type",
                              op[0] == 'E' ? "max_num_elements: int32"
                                           : "num_elements: int32"})
                     .output("handle: variant")
                     .attrs({element_dtype, shape_type})
                     .shape(new_list_shape)
                     .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListPushBack")
                   .inputs({"input_handle: variant", "tensor: element_dtype"})
                   .output("output_handle: variant")
                   .attr(element_dtype)
                   .changes_input(0)
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListPushBackBatch")
                   .inputs({"input_handles: variant", "tensor: element_dtype"})
                   .output("output_handles: variant")
                   .attr(element_dtype)
                   .changes_input(0)
                   .shape(push_batch_shape));
  registry.add(OpDefBuilder("TensorListPopBack")
                   .inputs({"input_handle: variant", "element_shape: int32"})
                   .outputs({"output_handle: variant", "tensor: element_dtype"})
                   .attr(element_dtype)
                   .changes_input(0)
                   .shape(pop_back_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListLength")
                   .input("input_handle: variant")
                   .output("length: int32")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  // For each list in a tensor of lists.
  registry.add(OpDefBuilder("TensorListLengths")
                   .input("input_handles: variant")
                   .output("lengths: int32")
                   .shape(unchanged_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListElementShape")
                   .input("input_handle: variant")
                   .output("element_shape: shape_type")
                   .attr(shape_type)
                   .shape(unknown_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListResize")
                   .inputs({"input_handle: variant", "size: int32"})
                   .output("output_handle: variant")
                   .changes_input(0)
                   .shape(resize_list_shape)
                   .work(Work::kNoData));
  registry.add(
      OpDefBuilder("TensorListSetItem")
          .inputs(
              {"input_handle: variant", "index: int32", "item: element_dtype"})
          .output("output_handle: variant")
          .attrs({element_dtype, "resize_if_index_out_of_bounds: bool = false"})
          .changes_input(0)
          .shape(set_item_shape)
          .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListGetItem")
                   .inputs({"input_handle: variant", "index: int32",
                            "element_shape: Tshape"})
                   .output("item: element_dtype")
                   .attrs({element_dtype, "Tshape: {int32, int64} = int32"})
                   .shape(get_item_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("TensorListStack")
                   .inputs({"input_handle: variant", "element_shape: int32"})
                   .output("tensor: element_dtype")
                   .attrs({element_dtype, "num_elements: int = -1"})
                   .shape(list_stack_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("TensorListGather")
                   .inputs({"input_handle: variant", "indices: int32",
                            "element_shape: int32"})
                   .output("values: element_dtype")
                   .attr(element_dtype)
                   .shape(list_gather_shape)
                   .work(Work::kMove));
  registry.add(
      OpDefBuilder("TensorListFromTensor")
          .inputs({"tensor: element_dtype", "element_shape: shape_type"})
          .output("output_handle: variant")
          .attrs({element_dtype, shape_type})
          .shape(list_from_tensor_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("TensorListScatter")
                   .inputs({"tensor: element_dtype", "indices: int32",
                            "element_shape: shape_type"})
                   .output("output_handle: variant")
                   .attrs({element_dtype, shape_type})
                   .shape(list_scatter_shape));
  registry.add(OpDefBuilder("TensorListScatterV2")
                   .inputs({"tensor: element_dtype", "indices: int32",
                            "element_shape: shape_type", "num_elements: int32"})
                   .output("output_handle: variant")
                   .attrs({element_dtype, shape_type})
                   .shape(list_scatter_shape));
  registry.add(OpDefBuilder("TensorListScatterIntoExistingList")
                   .inputs({"input_handle: variant", "tensor: element_dtype",
                            "indices: int32"})
                   .output("output_handle: variant")
                   .attr(element_dtype)
                   .changes_input(0)
                   .shape(scatter_into_shape));
  registry.add(OpDefBuilder("TensorListConcat")
                   .input("input_handle: variant")
                   .outputs({"tensor: element_dtype", "lengths: int64"})
                   .attrs({element_dtype, "element_shape: shape = <unknown>"})
                   .shape(list_concat_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("TensorListConcatV2")
                   .inputs({"input_handle: variant",
                            "element_shape: shape_type", "leading_dims: int64"})
                   .outputs({"tensor: element_dtype", "lengths: int64"})
                   .attrs({element_dtype, shape_type})
                   .shape(list_concat_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("TensorListSplit")
                   .inputs({"tensor: element_dtype",
                            "element_shape: shape_type", "lengths: int64"})
                   .output("output_handle: variant")
                   .attrs({element_dtype, shape_type})
                   .shape(list_split_shape));
  registry.add(OpDefBuilder("TensorListConcatLists")
                   .inputs({"input_a: variant", "input_b: variant"})
                   .output("output: variant")
                   .attr(element_dtype)
                   .changes_input(0)
                   .shape(concat_lists_shape));
}

}  // namespace tagflow::graph
