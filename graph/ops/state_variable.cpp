// Variables, by reference (VariableV2) and by handle (VarHandleOp): making,
// reading and assigning them.
#include <algorithm>

#include "graph/ops/state_ops.h"

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
    define_stateful(registry, name, {}, {"ref: Ref(dtype)"},
                    {"shape: shape", "dtype: type", "container: string = ''",
                     "shared_name: string = ''"},
                    declared_shape);
  define_stateful(registry, "TemporaryVariable", {}, {"ref: Ref(dtype)"},
                  {"shape: shape", "dtype: type", "var_name: string = ''"},
                  declared_shape);
  define(registry, "DestroyTemporaryVariable", {"ref: Ref(T)"}, {"value: T"},
         {"T: type", "var_name: string"}, unchanged_shape);
  // Not in TensorFlow: Note [References] in graph/analysis/dereference.h.
  define_stateful(registry, "_Dereference", {"ref: Ref(T)"}, {"value: T"},
                  {"T: type"}, unchanged_shape);
  registry.add(OpDefBuilder("IsVariableInitialized")
                   .input("ref: Ref(dtype)")
                   .output("is_initialized: bool")
                   .attr("dtype: type")
                   .allows_uninitialized_input()
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("Assign")
                   .input("ref: Ref(T)")
                   .input("value: T")
                   .output("output_ref: Ref(T)")
                   .attr("T: type")
                   .attr("validate_shape: bool = true")
                   .attr("use_locking: bool = true")
                   .allows_uninitialized_input()
                   .stateful()
                   .shape(assign_shape));
  for (const char* name : {"AssignAdd", "AssignSub"})
    define_stateful(
        registry, name, {"ref: Ref(T)", "value: T"}, {"output_ref: Ref(T)"},
        {"T: numbertype", "use_locking: bool = false"}, update_shape);
  define_stateful(registry, "CountUpTo", {"ref: Ref(T)"}, {"output: T"},
                  {"limit: int", "T: {int32, int64}"}, scalar_shape);
  define_stateful(registry, "StridedSliceAssign",
                  {"ref: Ref(T)", "begin: Index", "end: Index",
                   "strides: Index", "value: T"},
                  {"output_ref: Ref(T)"},
                  {"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
                   "end_mask: int = 0", "ellipsis_mask: int = 0",
                   "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"},
                  strided_assign_shape);
}

void register_handles(OpRegistry& registry) {
  define_stateful(registry, "VarHandleOp", {}, {"resource: resource"},
                  {"container: string = ''", "shared_name: string = ''",
                   "debug_name: string = ''", "dtype: type", "shape: shape",
                   "allowed_devices: list(string) = []"},
                  scalar_shape);
  define_stateful(registry, "_VarHandlesOp", {}, {"resources: N * resource"},
                  {"containers: list(string)", "shared_names: list(string)",
                   "N: int >= 0", "dtypes: list(type)", "shapes: list(shape)"},
                  scalar_shape);
  define_stateful(registry, "ReadVariableOp", {"resource: resource"},
                  {"value: dtype"}, {"dtype: type"}, read_shape);
  // Not in TensorFlow: Note [What is read ahead] in graph/passes/ahead.cpp.
  define_stateful(registry, "_ReadVariablesAhead", {"resources: N * resource"},
                  {"values: dtypes", "codes: int32", "messages: string"},
                  {"N: int >= 1", "dtypes: list(type)", "shapes: list(shape)"},
                  read_ahead_shape);
  define(registry, "_CheckReadAhead", {"codes: int32", "messages: string"}, {},
         {"index: int >= 0"}, no_output_shape);
  define_stateful(registry, "DisableCopyOnRead", {"resource: resource"}, {}, {},
                  no_output_shape);
  define_stateful(
      registry, "AssignVariableOp", {"resource: resource", "value: dtype"}, {},
      {"dtype: type", "validate_shape: bool = false"}, assign_variable_shape);
  for (const char* name : {"AssignAddVariableOp", "AssignSubVariableOp"})
    define_stateful(registry, name, {"resource: resource", "value: dtype"}, {},
                    {"dtype: type"}, update_variable_shape);
  define_stateful(registry, "VarIsInitializedOp", {"resource: resource"},
                  {"is_initialized: bool"}, {}, scalar_shape);
  define_stateful(registry, "VariableShape", {"input: resource"},
                  {"output: out_type"}, {"out_type: {int32, int64} = int32"},
                  shape_of_variable);
  define_stateful(registry, "DestroyResourceOp", {"resource: resource"}, {},
                  {"ignore_lookup_error: bool = true"}, no_output_shape);
  define_stateful(registry, "ResourceCountUpTo", {"resource: resource"},
                  {"output: T"}, {"limit: int", "T: {int32, int64}"},
                  scalar_shape);
  define_stateful(registry, "ResourceStridedSliceAssign",
                  {"ref: resource", "begin: Index", "end: Index",
                   "strides: Index", "value: T"},
                  {},
                  {"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
                   "end_mask: int = 0", "ellipsis_mask: int = 0",
                   "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"},
                  strided_assign_shape);
}

// Ops on generators whose state is a variable.
void register_counters(OpRegistry& registry) {
  define_stateful(registry, "RngSkip",
                  {"resource: resource", "algorithm: int64", "delta: int64"},
                  {}, {}, no_output_shape);
  define_stateful(registry, "RngReadAndSkip",
                  {"resource: resource", "alg: int32", "delta: uint64"},
                  {"value: int64"}, {}, [](ShapeContext& c) {
                    c.set_output(0, PartialShape({3}));
                    return Status();
                  });
}

}  // namespace

void register_variable_ops(OpRegistry& registry) {
  register_references(registry);
  register_handles(registry);
  register_counters(registry);
}

}  // namespace tagflow::graph
