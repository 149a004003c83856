// TensorLists.
#include "autodiff/rules/containers.h"

namespace tagflow::autodiff {
namespace {

// The length of a list, input 0 or output 0 of the node: the list itself is
// not saved.
Output length_before(RuleContext& r) {
  return r.forward("TensorListLength", {r.node().inputs()[0]});
}
Output length_after(RuleContext& r) {
  return r.forward("TensorListLength", {{const_cast<Node*>(&r.node()), 0}});
}

// Without the elements that an op has put between the end of its list and
// `end`.
Output without_new(RuleContext& r, const Output& gradients,
                   const graph::Input& end) {
  return r.scope().op("GradientListDrop", {gradients, length_before(r), end});
}

void list_set_item_rule(RuleContext& r) {
  const Output index = r.input(1);
  const Output rest = taken_gradient(r, index, 2, 0);
  if (!r.wants(0)) return;
  r.set(0, r.attr<bool>("resize_if_index_out_of_bounds")
               ? without_new(r, rest, index)
               : rest);
}

void list_get_item_rule(RuleContext& r) {
  r.set(0, one_gradient(r, r.input(1), r.grad()));
}

void list_push_back_rule(RuleContext& r) {
  r.set(0, taken_gradient(r, length_before(r), 1, 0));
}

void list_pop_back_rule(RuleContext& r) {
  if (!r.has_grad(1)) {
    r.set(0, r.grad(0));
    return;
  }
  r.set(0, r.scope().op("GradientListAdd",
                        {r.grad(0), length_after(r), r.grad(1)}));
}

void list_stack_rule(RuleContext& r) {
  r.set(0, row_gradients(r, gradient_row_indices(r), r.grad()));
}

void list_gather_rule(RuleContext& r) {
  r.set(0, row_gradients(r, r.input(1), r.grad()));
}

void list_from_tensor_rule(RuleContext& r) {
  r.set(0, gradient_rows_at(r, r.grad(), input_row_indices(r, 0), 0));
}

// For rows with the same index, only the last one is in the list.
void list_scatter_rule(RuleContext& r) {
  r.set(0, r.scope().op("GradientListTakeRows",
                        {r.grad(), r.input(1), input_row_shape(r, 0)},
                        {{"T", r.input_dtype(0)}})[1]);
}

void list_scatter_into_rule(RuleContext& r) {
  const Output rest = taken_gradient_rows(r, r.input(2), 1, 0);
  if (r.wants(0)) r.set(0, without_new(r, rest, length_after(r)));
}

void list_concat_rule(RuleContext& r) {
  r.set(0, part_gradients(r, r.grad(), r.output(1)));
}

void list_split_rule(RuleContext& r) {
  r.set(0, gradient_parts(r, r.grad(), r.input(2), 0));
}

void list_resize_rule(RuleContext& r) {
  r.set(0, without_new(r, r.grad(), r.input(1)));
}

// The lengths of the lists of input 0.
Output lengths_before(RuleContext& r) {
  return r.forward("TensorListLengths", {r.node().inputs()[0]});
}

void list_push_back_batch_rule(RuleContext& r) {
  r.set(0, taken_gradient_rows(r, lengths_before(r), 1, 0,
                               "GradientListTakeBatch"));
}

void concat_lists_rule(RuleContext& r) {
  const graph::OpResult parts =
      r.scope().op("GradientListSplit", {r.grad(), lengths_before(r)});
  r.set(0, parts[0]);
  r.set(1, parts[1]);
}

}  // namespace

void add_list_rules(RuleTable& table) {
  table.add_none({"EmptyTensorList", "TensorListReserve"},
                 "it has no elements yet");
  table.add_none({"TensorListLength", "TensorListLengths"},
                 "its result is a number of elements");
  table.add_none({"TensorListElementShape"}, "its result is a shape");
  table.add("TensorListSetItem", list_set_item_rule);
  table.add("TensorListGetItem", list_get_item_rule);
  table.add("TensorListPushBack", list_push_back_rule);
  table.add("TensorListPopBack", list_pop_back_rule);
  table.add("TensorListStack", list_stack_rule);
  table.add("TensorListGather", list_gather_rule);
  table.add("TensorListFromTensor", list_from_tensor_rule);
  table.add({"TensorListScatter", "TensorListScatterV2"}, list_scatter_rule);
  table.add("TensorListScatterIntoExistingList", list_scatter_into_rule);
  table.add({"TensorListConcat", "TensorListConcatV2"}, list_concat_rule);
  table.add("TensorListSplit", list_split_rule);
  table.add("TensorListResize", list_resize_rule);
  table.add("TensorListPushBackBatch", list_push_back_batch_rule);
  table.add("TensorListConcatLists", concat_lists_rule);
}

}  // namespace tagflow::autodiff
