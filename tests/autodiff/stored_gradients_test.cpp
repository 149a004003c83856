// Gradient functions that a SavedModel stores for tf.custom_gradient. The model
// is recorded by record_stored_gradients.py, which prints the table.
#include <doctest/doctest.h>

#include <fstream>

#include "autodiff/jvp.h"
#include "graph/file/graph_proto.h"
#include "graph/proto/meta_graph.pb.h"
#include "graph/stored_gradient.h"
#include "tests/autodiff/evaluate.h"
#include "tests/graph/hand_made.h"
#include "tests/source_path.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using graph::testing::contains;
using graph::testing::must;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::numbers;

namespace {

constexpr const char* kModel = "tests/autodiff/data/stored_gradients";

// A function of the model at x: its value, its derivative and the second one.
struct Known {
  const char* function;
  double x;
  Doubles values;
};

const Known kKnown[] = {
    {"plain", 0.7, {3.086, 213.47527074704766, 204.37527074704767}},
    {"plain", -0.4, {-0.928, 75.83200460356393, 70.03200460356393}},
    {"silu", 0.7, {1.1230574439820142, 2.0486854901048845, 0.732416562900576}},
    {"silu",
     -0.4,
     {-0.24802041509791006, 0.277795523312304, 1.4511983170928644}},
    {"variable", 0.7, {1.4, 1.4, 2.0}},
    {"variable", -0.4, {-0.8, -0.8, 2.0}},
    {"constant", 0.7, {2.1, 4.9, 7.0}},
    {"constant", -0.4, {-1.2, -2.8, 7.0}},
    {"called", 0.7, {4.321799999999999, 719.7646848811878, 3322.2492084714077}},
    {"called",
     -0.4,
     {0.46080000000000015, -62.3111189708033, 203.09015875383545}},
    {"looped",
     0.7,
     {6.366805760909013e-20, 2068.048393110469, 474778.73576011887}},
    {"looped",
     -0.4,
     {1.2089258196146344e-29, 673.635484069593, 50369.269863572445}},
    {"branched", 0.7, {0.686, 202.77527074704767, 203.37527074704767}},
    {"branched", -0.4, {0.0, -1.2, 6.0}},
    {"deep",
     0.7,
     {0.18715264663623485, 146.00883690910342, -10.669414958464628}},
    {"deep",
     -0.4,
     {0.023621594095872517, 62.540822346293446, 83.21558244820908}},
};

// One function of the model, in a graph of its own.
struct Program {
  explicit Program(const std::string& function) : Program(file(), function) {}
  Program(GraphFile file, const std::string& function)
      : signature(file.signatures.at(function)),
        graph(must(build_graph(std::move(file)))),
        x(tensor(signature.inputs.at("x"))),
        y(tensor(signature.outputs.at("y"))) {}

  static GraphFile file() { return must(load_file(source_path(kModel))); }

  Output tensor(const std::string& name) {
    return Output(must(graph.endpoint(name)));
  }

  Doubles run(const Outputs& outputs, double at) {
    const auto set = [&](const char* name, double value) -> Output {
      return s.op("AssignVariableOp", {tensor(name), ops::constant(s, value)},
                  {{"dtype", DataType::kDouble}});
    };
    const Output init = ops::group(s, {set("w", 2), set("v", 5)});
    return numbers(s, outputs, {{x.name(), Tensor::scalar(at)}}, {}, init);
  }

  Output derivative(const Output& of, const GradientOptions& options = {}) {
    return dense_gradients(s, {of}, {x}, options)[0];
  }

  Signature signature;
  Graph graph;
  const Scope s{graph};
  Output x, y;
};

void check_close(const Doubles& values, const Doubles& wanted) {
  REQUIRE(values.size() == wanted.size());
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(values[i] == doctest::Approx(wanted[i]).epsilon(1e-9));
}

// The model's file after a change of what it says about gradients.
GraphFile changed(void (*change)(tensorflow::MetaGraphDef&)) {
  std::ifstream in(source_path(std::string(kModel) + "/saved_model.pb"),
                   std::ios::binary);
  tensorflow::SavedModel model;
  REQUIRE(model.ParseFromIstream(&in));
  change(*model.mutable_meta_graphs(0));
  return must(meta_graph_from_proto(model.meta_graphs(0), {}));
}

// The message of the error that the gradient of `y` is.
std::string refusal(Program& program, const Output& y) {
  (void)program.derivative(y);
  CHECK(program.s.status().code() == Code::kNotFound);
  return std::string(program.s.status().message());
}

}  // namespace

TEST_CASE(
    "stored gradients of first and second order are those of TensorFlow") {
  for (const auto& [function, x, values] : kKnown) {
    CAPTURE(function);
    Program program(function);
    GradientOptions options = {.zeros_if_unconnected = true,
                               .check_liveness = true};
    const Output first = program.derivative(program.y, options);
    const Output second = program.derivative(first, options);
    check_close(program.run({program.y, first, second}, x), values);
  }
}

TEST_CASE("a stored gradient is transposed in forward mode") {
  for (const auto& [function, x, values] : kKnown) {
    CAPTURE(function);
    Program program(function);
    const Output one = ops::constant(program.s, 1.0);
    const Output tangent = jvp(program.s, {program.y}, {program.x}, {one})[0];
    check_close(program.run({tangent}, x), {values[1]});
  }
}

TEST_CASE("a variable has the stored gradient of its value") {
  Program program("variable");
  const Output w = program.tensor("w");
  const Output by_w = dense_gradients(program.s, {program.y}, {w})[0];
  // The gradient by x is x w.
  const Output mixed =
      dense_gradients(program.s, {program.derivative(program.y)}, {w})[0];
  check_close(program.run({by_w, mixed}, 0.7), {11, 0.7});
}

TEST_CASE("a stored gradient is used in a loop that is computed again") {
  Program lowered("looped");
  (void)lowered.derivative(lowered.y);
  std::string frame;
  for (const Node* node : lowered.graph.nodes())
    if (node->is_enter() && frame.empty())
      frame = must(node->attr<std::string>("frame_name"));
  for (const char* plan : {"log", "every:2"}) {
    Program program("looped");
    const Output first = program.derivative(
        program.y, {.save = {{frame, plan}}, .check_liveness = true});
    check_close(program.run({first}, 0.7), {2068.048393110469});
  }
}

TEST_CASE("a graph with a stored gradient is written with it") {
  for (const bool is_inlined : {false, true}) {
    Program program("plain");
    if (is_inlined) (void)program.derivative(program.y);
    GraphFile file = must(parse_graphdef(must(write_graphdef(program.graph))));
    file.signatures["plain"] = program.signature;
    Program again(std::move(file), "plain");
    const Output first = again.derivative(again.y);
    check_close(again.run({first, again.derivative(first)}, 0.7),
                {213.47527074704766, 204.37527074704767});
  }
}

TEST_CASE("a gradient function that is not stored is an error") {
  Program program("nested");
  const Output first = program.derivative(program.y);
  check_close(program.run({first}, 0.7), {0.46773144051771626});
  CHECK(contains(refusal(program, first), "which is not registered"));
}

TEST_CASE("a stored gradient that captures what is not passed is an error") {
  Program loop("outside");
  CHECK(contains(refusal(loop, loop.y), "it captures the tensor \"Sin:0\" of"));
  Program variable("hidden");
  CHECK(contains(refusal(variable, variable.y),
                 "it captures the variable \"v\", which is not passed to"));
}

TEST_CASE("a stored gradient that is incomplete in the file is an error") {
  using Meta = tensorflow::MetaGraphDef;
  const auto fails = [](void (*change)(Meta&), const char* why) {
    Program program(changed(change), "plain");
    const std::string message = refusal(program, program.y);
    CHECK_MESSAGE(contains(message, why), message);
  };
  fails(
      [](Meta& meta) {
        meta.mutable_graph_def()
            ->mutable_library()
            ->clear_registered_gradients();
      },
      "which is not registered");
  fails(
      [](Meta& meta) {
        for (auto& one : *meta.mutable_graph_def()
                              ->mutable_library()
                              ->mutable_registered_gradients())
          one.set_gradient_func("none");
      },
      "the function \"none\" is missing");
  fails(
      [](Meta& meta) {
        meta.mutable_object_graph_def()->clear_concrete_functions();
      },
      "is missing");
  fails(
      [](Meta& meta) {
        for (auto& [name, function] :
             *meta.mutable_object_graph_def()->mutable_concrete_functions())
          function.clear_output_signature();
      },
      "does not give a gradient for each input");
  fails(
      [](Meta& meta) {
        for (auto& [name, function] :
             *meta.mutable_object_graph_def()->mutable_concrete_functions())
          function.add_bound_inputs(0);
      },
      "has other arguments than the node has outputs");
  for (const char* name : {"nowhere:0", "exp:1", "Exp:-1", "Exp:y:0", ""}) {
    static const char* captured;
    captured = name;
    fails(
        [](Meta& meta) {
          for (auto& node : *meta.mutable_object_graph_def()->mutable_nodes())
            if (node.has_captured_tensor())
              node.mutable_captured_tensor()->set_name(captured);
        },
        "it captures the tensor");
  }
  // Which of two nodes has what the function captures is unknown.
  fails(
      [](Meta& meta) {
        for (auto& function :
             *meta.mutable_graph_def()->mutable_library()->mutable_function())
          for (int i = function.node_def_size(); i-- > 0;) {
            if (function.node_def(i).op() != "IdentityN") continue;
            auto& twin = *function.add_node_def();
            twin = function.node_def(i);
            twin.set_name(fmt::format("twin_{}", i));
          }
      },
      "belongs to several nodes");
}

TEST_CASE("a stored gradient that does not fit is an error") {
  Program program("silu");
  (void)program.derivative(program.y);
  Node* node = nullptr;
  for (Node* each : program.graph.nodes())
    if (each->attrs().contains(kStoredGradientAttr)) node = each;
  REQUIRE(node != nullptr);
  const auto fails = [&](std::string_view attr, AttrValue value,
                         const char* why) {
    const AttrValue before = node->attrs().find(attr)->second;
    program.graph.set_attr(node, std::string(attr), std::move(value));
    const Scope s(program.graph);
    (void)dense_gradients(s, {program.y}, {program.x});
    CHECK_MESSAGE(contains(s.status().message(), why), s.status().to_string());
    program.graph.set_attr(node, std::string(attr), before);
  };
  fails(kStoredGradientAttr, "none", "which is not in the library");
  fails(kStoredGradientAttr, 1.5, "_stored_gradient");
  fails(kStoredOutputsAttr, int64_t(100), "that many outputs");
  fails(kStoredOutputsAttr, int64_t(0), "that many outputs");
  fails(kStoredInputsAttr, std::vector<int64_t>{1, 1}, "once each");
  fails(kStoredInputsAttr, std::vector<int64_t>{1},
        "other arguments or results");
}
