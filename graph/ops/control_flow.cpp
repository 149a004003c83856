// Definitions of ops that forward tokens without computing: constants,
// identities, placeholders, the control-flow primitives, assertions and
// printing.
#include "graph/op_registry.h"
#include "graph/ops/control_flow_ops.h"
#include "graph/ops/file_use.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

namespace {

Status const_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Tensor value, c.attr<Tensor>("value"));
  TAGFLOW_ASSIGN(const DataType dtype, c.attr<DataType>("dtype"));
  if (value.dtype() != dtype)
    return c.fail(fmt::format("the value is {}, the attribute dtype says {}",
                              value.describe(), dtype_name(dtype)));
  c.set_output(0, value.shape());
  return {};
}

Status placeholder_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, c.attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return {};
}

// The attribute may be less specific than the default, but must match it.
Status placeholder_with_default_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, c.attr<PartialShape>("shape"));
  if (!shape.compatible(c.input(0)))
    return c.fail(fmt::format("the default has shape {}, the attribute says {}",
                              c.input(0).to_string(), shape.to_string()));
  c.set_output(0, std::move(shape));
  return {};
}

Status ensure_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape shape, c.attr<PartialShape>("shape"));
  if (!shape.compatible(c.input(0)))
    return c.fail(fmt::format("the input has shape {}, which is not {}",
                              c.input(0).to_string(), shape.to_string()));
  TAGFLOW_ASSIGN(PartialShape merged, shape.merge(c.input(0)));
  c.set_output(0, std::move(merged));
  return {};
}

// Output i has the shape of input i.
Status elementwise_list_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return {};
}

// Every output has the shape of input 0; input 1 selects one of them.
Status switch_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return {};
}

// The common shape of the inputs. An open back edge, and then the output, has
// unknown shape: later values may differ from the first.
Status merge_shape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) shape = shape.relax(c.input(i));
  c.set_output(0, std::move(shape));
  c.set_output(1, PartialShape::scalar());
  return {};
}

Status ref_select_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  PartialShape shape = c.input(1);
  for (int i = 2; i < c.num_inputs(); ++i) shape = shape.relax(c.input(i));
  c.set_output(0, std::move(shape));
  return {};
}

Status loop_cond_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, c.with_rank(0, 0));
  c.set_output(0, std::move(shape));
  return {};
}

// No outputs; input 0 is a scalar.
Status scalar_sink_shape(ShapeContext& c) { return c.with_rank(0, 0).status(); }

// An op that returns its only input.
OpDefBuilder identity_op(const char* name) {
  return OpDefBuilder(name)
      .input("input: T")
      .output("output: T")
      .attr("T: type")
      .shape(unchanged_shape);
}

void register_sources(OpRegistry& registry) {
  registry.add(OpDefBuilder("Const")
                   .output("output: dtype")
                   .attrs({"value: tensor", "dtype: type"})
                   .shape(const_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("Placeholder")
                   .output("output: dtype")
                   .attrs({"dtype: type", "shape: shape = <unknown>"})
                   .shape(placeholder_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("PlaceholderV2")
                   .output("output: dtype")
                   .attrs({"dtype: type", "shape: shape"})
                   .shape(placeholder_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("PlaceholderWithDefault")
                   .input("input: dtype")
                   .output("output: dtype")
                   .attrs({"dtype: type", "shape: shape"})
                   .forwards()
                   .shape(placeholder_with_default_shape));
  registry.add(OpDefBuilder("NoOp").shape(no_output_shape).work(Work::kFree));
}

void register_identities(OpRegistry& registry) {
  registry.add(identity_op("Identity").forwards());
  registry.add(identity_op("StopGradient").forwards());
  registry.add(
      identity_op("PreventGradient").attr("message: string = ''").forwards());
  registry.add(identity_op("Snapshot").forwards());
  registry.add(identity_op("GuaranteeConst").stateful().forwards());
  registry.add(identity_op("EnsureShape")
                   .attr("shape: shape")
                   .shape(ensure_shape)
                   .work(Work::kNoData));
  registry.add(OpDefBuilder("RefIdentity")
                   .input("input: Ref(T)")
                   .output("output: Ref(T)")
                   .attr("T: type")
                   .allows_uninitialized_input()
                   .forwards()
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("IdentityN")
                   .input("input: T")
                   .output("output: T")
                   .attr("T: list(type) >= 1")
                   .shape(elementwise_list_shape)
                   .work(Work::kFree));
}

// Ops that the engine adds at the borders of a graph or a partition.
void register_borders(OpRegistry& registry) {
  registry.add(OpDefBuilder("_Arg")
                   .output("output: T")
                   .attrs({"T: type", "index: int >= 0"})
                   .stateful()
                   .shape(unknown_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("_Retval")
                   .input("input: T")
                   .attrs({"T: type", "index: int >= 0"})
                   .stateful()
                   .shape(no_output_shape)
                   .work(Work::kFree));
  for (const char* name : {"_Send", "_HostSend"})
    registry.add(
        OpDefBuilder(name)
            .input("tensor: T")
            .attrs({"T: type", "tensor_name: string", "send_device: string",
                    "send_device_incarnation: int", "recv_device: string",
                    "client_terminated: bool = false"})
            .stateful()
            .shape(no_output_shape));
  for (const char* name : {"_Recv", "_HostRecv"})
    registry.add(
        OpDefBuilder(name)
            .output("tensor: tensor_type")
            .attrs({"tensor_type: type", "tensor_name: string",
                    "send_device: string", "send_device_incarnation: int",
                    "recv_device: string", "client_terminated: bool = false"})
            .stateful()
            .may_die()
            .shape(unknown_shape));
}

void register_conditionals(OpRegistry& registry) {
  registry.add(OpDefBuilder("Switch")
                   .inputs({"data: T", "pred: bool"})
                   .outputs({"output_false: T", "output_true: T"})
                   .attr("T: type")
                   .may_die()
                   .shape(switch_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("RefSwitch")
                   .inputs({"data: Ref(T)", "pred: bool"})
                   .outputs({"output_false: Ref(T)", "output_true: Ref(T)"})
                   .attr("T: type")
                   .allows_uninitialized_input()
                   .may_die()
                   .shape(switch_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("_SwitchN")
                   .inputs({"data: T", "output_index: int32"})
                   .output("outputs: num_outs * T")
                   .attrs({"num_outs: int >= 1", "T: type"})
                   .may_die()
                   .shape(switch_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("Merge")
                   .input("inputs: N * T")
                   .outputs({"output: T", "value_index: int32"})
                   .attrs({"T: type", "N: int >= 1"})
                   .may_die()
                   .shape(merge_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("RefMerge")
                   .input("inputs: Ref(N * T)")
                   .outputs({"output: Ref(T)", "value_index: int32"})
                   .attrs({"T: type", "N: int >= 1"})
                   .may_die()
                   .shape(merge_shape)
                   .work(Work::kFree));
  registry.add(OpDefBuilder("RefSelect")
                   .inputs({"index: int32", "inputs: Ref(N * T)"})
                   .output("output: Ref(T)")
                   .attrs({"T: type", "N: int >= 1"})
                   .shape(ref_select_shape));
  registry.add(
      OpDefBuilder("ControlTrigger").shape(no_output_shape).work(Work::kFree));
}

void register_loops(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("Enter")
          .input("data: T")
          .output("output: T")
          .attrs({"T: type", "frame_name: string", "is_constant: bool = false",
                  "parallel_iterations: int = 10"})
          .shape(unchanged_shape)
          .work(Work::kFree));
  registry.add(
      OpDefBuilder("RefEnter")
          .input("data: Ref(T)")
          .output("output: Ref(T)")
          .attrs({"T: type", "frame_name: string", "is_constant: bool = false",
                  "parallel_iterations: int = 10"})
          .shape(unchanged_shape)
          .work(Work::kFree));
  for (const char* name : {"Exit", "NextIteration"})
    registry.add(OpDefBuilder(name)
                     .input("data: T")
                     .output("output: T")
                     .attr("T: type")
                     .shape(unchanged_shape)
                     .work(Work::kFree));
  for (const char* name : {"RefExit", "RefNextIteration"})
    registry.add(OpDefBuilder(name)
                     .input("data: Ref(T)")
                     .output("output: Ref(T)")
                     .attr("T: type")
                     .shape(unchanged_shape)
                     .work(Work::kFree));
  registry.add(OpDefBuilder("LoopCond")
                   .input("input: bool")
                   .output("output: bool")
                   .forwards()
                   .shape(loop_cond_shape));
}

bool prints_to_file(const AttrMap& attrs) {
  return may_say(attrs, "output_stream", [](std::string_view stream) {
    return stream.starts_with("file://");
  });
}

void register_checks(OpRegistry& registry) {
  registry.add(OpDefBuilder("Assert")
                   .inputs({"condition: bool", "data: T"})
                   .attrs({"T: list(type) >= 1", "summarize: int = 3"})
                   .stateful()
                   .shape(scalar_sink_shape)
                   .work(Work::kNoData));
  registry.add(
      OpDefBuilder("Print")
          .inputs({"input: T", "data: U"})
          .output("output: T")
          .attrs({"T: type", "U: list(type) >= 0", "message: string = ''",
                  "first_n: int = -1", "summarize: int = 3"})
          .stateful()
          .shape(unchanged_shape));
  registry.add(
      OpDefBuilder("PrintV2")
          .input("input: string")
          .attrs({"output_stream: string = 'stderr'", "end: string = '\n'"})
          .stateful()
          .shape(scalar_sink_shape),
      prints_to_file);
  registry.add(
      OpDefBuilder("Abort")
          .attrs({"error_msg: string = ''", "exit_without_error: bool = false"})
          .shape(no_output_shape));
  for (const char* name : {"CheckNumerics", "CheckNumericsV2"})
    registry.add(
        OpDefBuilder(name)
            .input("tensor: T")
            .output("output: T")
            .attrs({"T: {bfloat16, half, float, double}", "message: string"})
            .stateful()
            .shape(unchanged_shape));
}

}  // namespace

void register_control_flow_ops(OpRegistry& registry) {
  register_control_flow_functions_ops(registry);
  register_sources(registry);
  register_identities(registry);
  register_borders(registry);
  register_conditionals(registry);
  register_loops(registry);
  register_checks(registry);
}

}  // namespace tagflow::graph
