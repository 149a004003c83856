// Variables, by reference (VariableV2) and by handle (VarHandleOp): making,
// reading and assigning them.
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/ops/array_gather.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

Status declared_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, c.attr<PartialShape>("shape"));
  // The oldest op cannot express an unknown shape otherwise.
  if (c.node().op() == "Variable" && shape.has_rank() && shape.rank() == 0)
    shape = PartialShape();
  c.set_output(0, std::move(shape));
  return {};
}

// The variable keeps its shape, unless the node allows a change.
Status assign_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const bool validates, c.attr<bool>("validate_shape"));
  if (!validates) {
    c.set_output(0, c.input(1));
    return {};
  }
  auto merged = c.input(0).merge(c.input(1));
  if (!merged.ok())
    return c.fail(
        fmt::format("a value of shape {} does not fit a variable of "
                    "shape {}",
                    c.input(1).to_string(), c.input(0).to_string()));
  c.set_output(0, *std::move(merged));
  return {};
}

Status update_shape(ShapeContext& c) {
  auto merged = c.input(0).merge(c.input(1));
  if (!merged.ok())
    return c.fail(
        fmt::format("a change of shape {} does not fit a variable of "
                    "shape {}",
                    c.input(1).to_string(), c.input(0).to_string()));
  c.set_output(0, *std::move(merged));
  return {};
}

Status read_shape(ShapeContext& c) {
  c.set_output(0, variable_shape(c, 0));
  return {};
}

Status check_assigned(const ShapeContext& c, const PartialShape& variable) {
  if (!variable.compatible(c.input(1)))
    return c.fail(
        fmt::format("a value of shape {} does not fit a variable of "
                    "shape {}",
                    c.input(1).to_string(), variable.to_string()));
  return {};
}

Status read_ahead_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const auto shapes,
                 c.attr<std::vector<PartialShape>>("shapes"));
  const auto count = size_t(c.num_inputs());
  if (shapes.size() != count || size_t(c.num_outputs()) != count + 2 ||
      !std::ranges::all_of(shapes, &PartialShape::fully_known))
    return c.fail("there is not one whole shape and type for each variable");
  for (size_t i = 0; i < count; ++i) c.set_output(int(i), shapes[i]);
  for (size_t i = count; i < count + 2; ++i)
    c.set_output(int(i), PartialShape({int64_t(count)}));
  return {};
}

Status assign_variable_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const bool validates, c.attr<bool>("validate_shape"));
  return validates ? check_assigned(c, variable_shape(c, 0)) : Status();
}

Status update_variable_shape(ShapeContext& c) {
  return check_assigned(c, variable_shape(c, 0));
}

Status shape_of_variable(ShapeContext& c) {
  const PartialShape shape = variable_shape(c, 0);
  c.set_output(0, PartialShape({shape.has_rank() ? shape.rank() : -1}));
  return {};
}

Status strided_assign_shape(ShapeContext& c) {
  const PartialShape variable = state_shape(c, 0);
  TAGFLOW_ASSIGN(const PartialShape slice, sliced_shape(c, variable));
  if (!slice.compatible(c.input(4)))
    return c.fail(fmt::format("the value is {}, the slice is {}",
                              c.input(4).to_string(), slice.to_string()));
  if (c.num_outputs() > 0) c.set_output(0, variable);
  return {};
}

void register_references(OpRegistry& registry) {
  for (const char* name : {"VariableV2", "Variable"})
    registry.add(
        OpDefBuilder(name)
            .output("ref: Ref(dtype)")
            .attrs({"shape: shape", "dtype: type", "container: string = ''",
                    "shared_name: string = ''"})
            .stateful()
            .shape(declared_shape));
  registry.add(
      OpDefBuilder("TemporaryVariable")
          .output("ref: Ref(dtype)")
          .attrs({"shape: shape", "dtype: type", "var_name: string = ''"})
          .stateful()
          .shape(declared_shape));
  registry.add(OpDefBuilder("DestroyTemporaryVariable")
                   .input("ref: Ref(T)")
                   .output("value: T")
                   .attrs({"T: type", "var_name: string"})
                   .shape(unchanged_shape));
  // Not in TensorFlow: Note [References] in graph/analysis/dereference.h.
  registry.add(OpDefBuilder("_Dereference")
                   .input("ref: Ref(T)")
                   .output("value: T")
                   .attr("T: type")
                   .stateful()
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("IsVariableInitialized")
                   .input("ref: Ref(dtype)")
                   .output("is_initialized: bool")
                   .attr("dtype: type")
                   .allows_uninitialized_input()
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("Assign")
                   .inputs({"ref: Ref(T)", "value: T"})
                   .output("output_ref: Ref(T)")
                   .attrs({"T: type", "validate_shape: bool = true",
                           "use_locking: bool = true"})
                   .allows_uninitialized_input()
                   .stateful()
                   .shape(assign_shape));
  for (const char* name : {"AssignAdd", "AssignSub"})
    registry.add(OpDefBuilder(name)
                     .inputs({"ref: Ref(T)", "value: T"})
                     .output("output_ref: Ref(T)")
                     .attrs({"T: numbertype", "use_locking: bool = false"})
                     .stateful()
                     .shape(update_shape));
  registry.add(OpDefBuilder("CountUpTo")
                   .input("ref: Ref(T)")
                   .output("output: T")
                   .attrs({"limit: int", "T: {int32, int64}"})
                   .stateful()
                   .shape(scalar_shape));
  registry.add(
      OpDefBuilder("StridedSliceAssign")
          .inputs({"ref: Ref(T)", "begin: Index", "end: Index",
                   "strides: Index", "value: T"})
          .output("output_ref: Ref(T)")
          .attrs({"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
                  "end_mask: int = 0", "ellipsis_mask: int = 0",
                  "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"})
          .stateful()
          .shape(strided_assign_shape));
}

void register_handles(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("VarHandleOp")
          .output("resource: resource")
          .attrs({"container: string = ''", "shared_name: string = ''",
                  "debug_name: string = ''", "dtype: type", "shape: shape",
                  "allowed_devices: list(string) = []"})
          .stateful()
          .shape(scalar_shape));
  registry.add(
      OpDefBuilder("_VarHandlesOp")
          .output("resources: N * resource")
          .attrs({"containers: list(string)", "shared_names: list(string)",
                  "N: int >= 0", "dtypes: list(type)", "shapes: list(shape)"})
          .stateful()
          .shape(scalar_shape));
  registry.add(OpDefBuilder("ReadVariableOp")
                   .input("resource: resource")
                   .output("value: dtype")
                   .attr("dtype: type")
                   .stateful()
                   .shape(read_shape));
  // Not in TensorFlow: Note [What is read ahead] in graph/passes/ahead.cpp.
  registry.add(
      OpDefBuilder("_ReadVariablesAhead")
          .input("resources: N * resource")
          .outputs({"values: dtypes", "codes: int32", "messages: string"})
          .attrs({"N: int >= 1", "dtypes: list(type)", "shapes: list(shape)"})
          .stateful()
          .shape(read_ahead_shape));
  registry.add(OpDefBuilder("_CheckReadAhead")
                   .inputs({"codes: int32", "messages: string"})
                   .attr("index: int >= 0")
                   .shape(no_output_shape));
  registry.add(OpDefBuilder("DisableCopyOnRead")
                   .input("resource: resource")
                   .stateful()
                   .shape(no_output_shape));
  registry.add(OpDefBuilder("AssignVariableOp")
                   .inputs({"resource: resource", "value: dtype"})
                   .attrs({"dtype: type", "validate_shape: bool = false"})
                   .stateful()
                   .shape(assign_variable_shape));
  for (const char* name : {"AssignAddVariableOp", "AssignSubVariableOp"})
    registry.add(OpDefBuilder(name)
                     .inputs({"resource: resource", "value: dtype"})
                     .attr("dtype: type")
                     .stateful()
                     .shape(update_variable_shape));
  registry.add(OpDefBuilder("VarIsInitializedOp")
                   .input("resource: resource")
                   .output("is_initialized: bool")
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("VariableShape")
                   .input("input: resource")
                   .output("output: out_type")
                   .attr("out_type: {int32, int64} = int32")
                   .stateful()
                   .shape(shape_of_variable));
  registry.add(OpDefBuilder("DestroyResourceOp")
                   .input("resource: resource")
                   .attr("ignore_lookup_error: bool = true")
                   .stateful()
                   .shape(no_output_shape));
  registry.add(OpDefBuilder("ResourceCountUpTo")
                   .input("resource: resource")
                   .output("output: T")
                   .attrs({"limit: int", "T: {int32, int64}"})
                   .stateful()
                   .shape(scalar_shape));
  registry.add(
      OpDefBuilder("ResourceStridedSliceAssign")
          .inputs({"ref: resource", "begin: Index", "end: Index",
                   "strides: Index", "value: T"})
          .attrs({"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
                  "end_mask: int = 0", "ellipsis_mask: int = 0",
                  "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"})
          .stateful()
          .shape(strided_assign_shape));
}

}  // namespace

void register_variable_ops(OpRegistry& registry) {
  register_references(registry);
  register_handles(registry);
  register_variable_scatter_ops(registry);
  register_variable_session_ops(registry);
  register_variable_checkpoint_ops(registry);
}

}  // namespace tagflow::graph
