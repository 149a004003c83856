// Ops that only differentiated graphs have: gradients of element-wise
// functions, and of containers.
#include "graph/op_registry.h"
#include "graph/ops/elementwise_shapes.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/ops/type_sets.h"

namespace tagflow::graph {

namespace {

// The shape of input 0; input 1 has the same number of elements.
Status paired_shape(ShapeContext& c) {
  const PartialShape &y = c.input(0), &dy = c.input(1);
  if (y.fully_known() && dy.fully_known() &&
      y.num_elements() != dy.num_elements())
    return c.fail(fmt::format(
        "inputs 0 and 1 differ in their numbers of elements: {}, {}",
        y.to_string(), dy.to_string()));
  c.set_output(0, y);
  return {};
}

// The gradient of a unary op, from its result and its result's gradient.
OpDefBuilder unary_gradient(const char* name) {
  return OpDefBuilder(name)
      .inputs({"y: T", "dy: T"})
      .output("z: T")
      .attr(type_set(kInexact))
      .shape(paired_shape);
}

void register_unary_gradients(OpRegistry& registry) {
  for (const char* name : {"SigmoidGrad", "TanhGrad"})
    registry.add(unary_gradient(name).fusible());
  for (const char* name :
       {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"})
    registry.add(unary_gradient(name));
  registry.add(OpDefBuilder("SoftsignGrad")
                   .inputs({"gradients: T", "features: T"})
                   .output("backprops: T")
                   .attr(type_set(kFloating))
                   .shape(same_shape));
}

// Output `port`: elements of the shape given by input `i`, after `outer`; for
// variants, whose shapes are not needed, scalars.
Status set_elements(ShapeContext& c, int port, int i, PartialShape outer) {
  PartialShape element = PartialShape::scalar();
  if (c.node().output_dtypes()[size_t(port)] != DataType::kVariant) {
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
    TAGFLOW_ASSIGN(element, c.constant_as_shape(i));
  }
  c.set_output(port, concatenate(outer, element));
  return {};
}

Status set_list(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  c.set_output(0, PartialShape::scalar());
  return {};
}

Status add_gradient_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return set_list(c);
}

Status get_gradient_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  TAGFLOW_RETURN_IF_ERROR(set_list(c));
  return set_elements(c, c.num_outputs() - 1, 2, PartialShape::scalar());
}

Status add_gradients_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(2, 1).status());
  return set_list(c);
}

Status get_gradients_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(set_list(c));
  return set_elements(c, c.num_outputs() - 1, 2, {c.input(1).num_elements()});
}

Status drop_gradients_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 0).status());
  return set_list(c);
}

Status split_gradients_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(1, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  return set_list(c);
}

Status join_gradients_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  return set_elements(c, 0, 2, {PartialShape::kUnknown});
}

// As many lists as input `i` has elements; an empty variant represents all of
// them.
Status set_lists(ShapeContext& c, int port, int i) {
  if (c.input(0).has_rank() && c.input(0).rank() != 0) {
    auto merged = c.input(0).merge(c.input(i));
    if (!merged.ok())
      return c.fail(
          fmt::format("shapes of the lists and of input {} differ: "
                      "{} and {}",
                      i, c.input(0).to_string(), c.input(i).to_string()));
  }
  c.set_output(port, c.input(i));
  return {};
}

Status take_batch_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(1, 1));
  TAGFLOW_RETURN_IF_ERROR(set_lists(c, 0, 1));
  return set_elements(c, 1, 2, indices);
}

Status put_batch_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(2, 1).status());
  return set_lists(c, 0, 1);
}

Status split_lists_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(set_lists(c, 1, 1));
  return set_lists(c, 0, 1);
}

Status join_lists_shape(ShapeContext& c) { return set_lists(c, 0, 2); }

// The gradient of a container: a list of the gradients of single elements, by
// index. Elements without gradient are zeros, and ZeroVariant is the gradient
// of a container in which no element has one. Add and Get are the derivatives
// of each other, and so are Put and Take, which remove the present elements.
void register_gradient_lists(OpRegistry& registry) {
  const auto index = "index: int32";
  const auto indices = "indices: int32";
  const auto list = "list: variant";
  const auto next = "output_list: variant";
  const auto shape = "shape: Tshape";
  const auto shape_type = "Tshape: {int32, int64} = int32";
  const auto value = "value: T";
  const auto values = "values: T";
  const auto type = "T: type";
  for (const char* op : {"GradientListAdd", "GradientListPut"})
    registry.add(OpDefBuilder(op)
                     .inputs({list, index, value})
                     .output(next)
                     .attr(type)
                     .changes_input(0)
                     .shape(add_gradient_shape)
                     .work(Work::kNoData));
  registry.add(OpDefBuilder("GradientListGet")
                   .inputs({list, index, shape})
                   .output(value)
                   .attrs({type, shape_type})
                   .shape(get_gradient_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("GradientListTake")
                   .inputs({list, index, shape})
                   .outputs({next, value})
                   .attrs({type, shape_type})
                   .changes_input(0)
                   .shape(get_gradient_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("GradientListDrop")
                   .inputs({list, "begin: int32", "end: int32"})
                   .output(next)
                   .changes_input(0)
                   .shape(drop_gradients_shape)
                   .work(Work::kNoData));

  // Row i is for element indices[i].
  for (const char* op : {"GradientListAddRows", "GradientListPutRows"})
    registry.add(OpDefBuilder(op)
                     .inputs({list, indices, values})
                     .output(next)
                     .attr(type)
                     .changes_input(0)
                     .shape(add_gradients_shape)
                     .work(Work::kMove));
  registry.add(OpDefBuilder("GradientListGetRows")
                   .inputs({list, indices, shape})
                   .output(values)
                   .attrs({type, shape_type})
                   .shape(get_gradients_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("GradientListTakeRows")
                   .inputs({list, indices, shape})
                   .outputs({next, values})
                   .attrs({type, shape_type})
                   .changes_input(0)
                   .shape(get_gradients_shape)
                   .work(Work::kMove));

  // lengths[i] rows, each of a shape, are for element i.
  registry.add(OpDefBuilder("GradientListAddSplit")
                   .inputs({list, values, "lengths: int64"})
                   .output(next)
                   .attr(type)
                   .changes_input(0)
                   .shape(split_gradients_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("GradientListGetConcat")
                   .inputs({list, "lengths: int64", shape})
                   .output(values)
                   .attrs({type, shape_type})
                   .shape(join_gradients_shape)
                   .work(Work::kMove));

  // Take and Put for a tensor of lists: row i is element indices[i] of list i.
  const auto lists = "lists: variant";
  const auto next_lists = "output_lists: variant";
  registry.add(OpDefBuilder("GradientListTakeBatch")
                   .inputs({lists, indices, shape})
                   .outputs({next_lists, values})
                   .attrs({type, shape_type})
                   .changes_input(0)
                   .shape(take_batch_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("GradientListPutBatch")
                   .inputs({lists, indices, values})
                   .output(next_lists)
                   .attr(type)
                   .changes_input(0)
                   .shape(put_batch_shape)
                   .work(Work::kMove));
  // The elements of list i before lengths[i], and the others, with indices from
  // 0. Join is the inverse, and the derivative.
  const auto lengths = "lengths: int32";
  registry.add(OpDefBuilder("GradientListSplit")
                   .inputs({lists, lengths})
                   .outputs({"first: variant", "rest: variant"})
                   .changes_input(0)
                   .shape(split_lists_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("GradientListJoin")
                   .inputs({"first: variant", "rest: variant", lengths})
                   .output(next_lists)
                   .changes_input(0)
                   .shape(join_lists_shape)
                   .work(Work::kMove));
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

// Stacks that are values.
void register_persistent_stacks(OpRegistry& registry) {
  registry.add(OpDefBuilder("PersistentStack")
                   .output("handle: variant")
                   .attr("elem_type: type")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("PersistentStackPush")
                   .inputs({"handle: variant", "elem: T"})
                   .output("output: variant")
                   .attr("T: type")
                   .changes_input(0)
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("PersistentStackPop")
                   .input("handle: variant")
                   .outputs({"output: variant", "elem: elem_type"})
                   .attrs({"elem_type: type", "elem_shape: shape = <unknown>"})
                   .changes_input(0)
                   .shape(persistent_pop_shape)
                   .work(Work::kNoData));
  // For stacks of gradients, aligned at the top. An empty variant has no
  // elements, and missing elements are zeros: Push and PopOrZero are the
  // derivatives of each other, and so are PushZero and Drop.
  registry.add(OpDefBuilder("PersistentStackPushZero")
                   .input("handle: variant")
                   .output("output: variant")
                   .attr("elem_type: type")
                   .changes_input(0)
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("PersistentStackPopOrZero")
                   .inputs({"handle: variant", "shape: Tshape"})
                   .outputs({"output: variant", "elem: elem_type"})
                   .attrs({"elem_type: type", "Tshape: {int32, int64} = int32"})
                   .changes_input(0)
                   .shape(persistent_pop_or_zero_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("PersistentStackDrop")
                   .input("handle: variant")
                   .output("output: variant")
                   .attr("elem_type: type")
                   .changes_input(0)
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("PersistentStackSize")
                   .input("handle: variant")
                   .output("size: int64")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
}

}  // namespace

void register_gradient_ops(OpRegistry& registry) {
  register_unary_gradients(registry);
  registry.add(OpDefBuilder("ZeroVariant")
                   .output("output: variant")
                   .shape(scalar_shape)
                   .work(Work::kNoData));
  register_gradient_lists(registry);
  register_persistent_stacks(registry);
}

}  // namespace tagflow::graph
