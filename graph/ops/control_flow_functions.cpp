// Function calls, and control flow over functions. They are lowered before a
// run: graph/functions/lower.h.
#include "graph/op_registry.h"
#include "graph/ops/control_flow_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// The shapes in "output_shapes", if it is given.
Status declared_shapes(ShapeContext& c) {
  if (!c.node().attrs().contains("output_shapes")) return {};
  TAGFLOW_ASSIGN(const auto shapes,
                 c.attr<std::vector<PartialShape>>("output_shapes"));
  if (shapes.empty()) return {};
  if (int(shapes.size()) != c.num_outputs())
    return c.fail(fmt::format("{} output_shapes for {} outputs", shapes.size(),
                              c.num_outputs()));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[size_t(i)]);
  return {};
}

// A gradient has the shape of its argument.
Status argument_shapes(ShapeContext& c) {
  if (c.num_outputs() > c.num_inputs())
    return c.fail(fmt::format("there are {} outputs, but {} inputs",
                              c.num_outputs(), c.num_inputs()));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return {};
}

// Start, limit and step of the loop are scalars.
Status for_shape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return {};
}

Status trip_count_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(for_shape(c));
  c.set_output(0, PartialShape::scalar());
  return {};
}

// Inputs and outputs of any types.
OpDefBuilder with_ports(OpDefBuilder builder, const char* input) {
  return builder.input(input)
      .output("output: Tout")
      .attrs({"Tin: list(type) >= 0", "Tout: list(type) >= 0"});
}

OpDefBuilder with_shapes(OpDefBuilder builder) {
  return builder.attr("output_shapes: list(shape) = []").shape(declared_shapes);
}

void register_calls(OpRegistry& registry) {
  const auto add = [&](OpDefBuilder builder) {
    registry.add(with_ports(std::move(builder), "args: Tin")
                     .attrs({"f: func", "config: string = ''",
                             "config_proto: string = ''",
                             "executor_type: string = ''"}));
  };
  add(OpDefBuilder("PartitionedCall"));
  add(OpDefBuilder("StatefulPartitionedCall").stateful());
  // The target is the name of a device.
  registry.add(
      with_ports(OpDefBuilder("RemoteCall").stateful().input("target: string"),
                 "args: Tin")
          .attr("f: func"));
  // For f(x) = y: takes x and the gradients of y, returns those of x.
  registry.add(with_ports(OpDefBuilder("SymbolicGradient"), "input: Tin")
                   .attr("f: func")
                   .shape(argument_shapes));
  // The remaining call of a recursive function: body number `body` of the
  // program, in a frame of its own.
  registry.add(with_ports(OpDefBuilder("_Call").stateful(), "args: Tin")
                   .attrs({"f: func", "body: int >= 0"})
                   .work(Work::kFree));
}

void register_branches(OpRegistry& registry) {
  const auto add_if = [&](OpDefBuilder builder) {
    builder.input("cond: Tcond").attr("Tcond: type");
    registry.add(
        with_shapes(with_ports(std::move(builder), "input: Tin")
                        .attrs({"then_branch: func", "else_branch: func"})));
  };
  add_if(OpDefBuilder("If").stateful());
  add_if(OpDefBuilder("StatelessIf"));
  const auto add_case = [&](OpDefBuilder builder) {
    builder.input("branch_index: int32");
    registry.add(with_shapes(with_ports(std::move(builder), "input: Tin")
                                 .attr("branches: list(func) >= 1")));
  };
  add_case(OpDefBuilder("Case").stateful());
  add_case(OpDefBuilder("StatelessCase"));
}

// Loop variables have the same types in all iterations.
OpDefBuilder with_variables(OpDefBuilder builder) {
  return builder.input("input: T")
      .output("output: T")
      .attr("T: list(type) >= 0");
}

// Start, limit and step of a For.
OpDefBuilder with_range(OpDefBuilder builder) {
  return builder.inputs({"start: int32", "limit: int32", "delta: int32"});
}

void register_functional_loops(OpRegistry& registry) {
  const auto add_while = [&](OpDefBuilder builder) {
    registry.add(with_shapes(with_variables(std::move(builder))
                                 .attrs({"cond: func", "body: func"}))
                     .attr("parallel_iterations: int >= 1 = 10"));
  };
  add_while(OpDefBuilder("While").stateful());
  add_while(OpDefBuilder("StatelessWhile"));
  registry.add(with_variables(with_range(OpDefBuilder("For")))
                   .attr("body: func")
                   .stateful()
                   .shape(for_shape));
  // The number of iterations of a For.
  registry.add(with_range(OpDefBuilder("_ForTripCount"))
                   .output("trips: int32")
                   .shape(trip_count_shape)
                   .work(Work::kNoData));
}

}  // namespace

void register_control_flow_functions_ops(OpRegistry& registry) {
  register_calls(registry);
  register_branches(registry);
  register_functional_loops(registry);
}

}  // namespace tagflow::graph
