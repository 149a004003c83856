// Gradient functions that a SavedModel stores for tf.custom_gradient.
#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include "graph/file/graph_proto.h"
#include "graph/proto/meta_graph.pb.h"
#include "tests/autodiff/evaluate.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/pbtxt.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using namespace tagflow::graph::pbtxt;  // NOLINT: pieces of text
using graph::testing::must;

namespace {

std::string body(const std::string& name, const std::string& op,
                 const std::string& more) {
  return "node_def { name: '" + name + "' op: '" + op + "' " + more + "} ";
}

std::string product(const std::string& name, const std::string& inputs) {
  return body(name, "Mul", in(inputs) + type("T", "DT_DOUBLE"));
}

std::string arg(const char* kind, const std::string& name) {
  return std::string(kind) + " { name: '" + name + "' type: DT_DOUBLE } ";
}

// y = x^2 by a function f, whose stored gradient is that of the result times
// 100 and the captured tensor.
std::string model(const std::string& captured, const std::string& owner = "f") {
  return "graph_def { " + placeholder("x", "DT_DOUBLE", "") +
         node("y", "PartitionedCall",
              in("x") + attr("f", "func { name: 'f' }") +
                  attr("Tin", "list { type: DT_DOUBLE }") +
                  attr("Tout", "list { type: DT_DOUBLE }")) +
         "library { function { signature { name: 'f' " + arg("input_arg", "x") +
         arg("output_arg", "y") + "} " + product("square", "x x") +
         body("results", "IdentityN",
              in("square:z:0 x") +
                  attr("T", "list { type: [DT_DOUBLE, DT_DOUBLE] }") +
                  attr("_gradient_op_type", "s: 'CustomGradient-1'")) +
         "ret { key: 'y' value: 'results:output:0' } } " +
         "function { signature { name: 'gradient' " + arg("input_arg", "dy") +
         arg("input_arg", "dx") + arg("input_arg", "captured") +
         arg("output_arg", "result") + "} " +
         body("hundred", "Const",
              type("dtype", "DT_DOUBLE") +
                  attr("value",
                       "tensor { dtype: DT_DOUBLE tensor_shape {} "
                       "double_val: 100 }")) +
         product("scaled", "captured hundred:output:0") +
         product("product", "dy scaled:z:0") +
         "ret { key: 'result' value: 'product:z:0' } } "
         "registered_gradients { gradient_func: 'gradient' "
         "registered_op_type: 'CustomGradient-1' } } } "
         "object_graph_def { nodes {} nodes { captured_tensor { name: '" +
         captured + "' concrete_function: '" + owner +
         "' } } concrete_functions { key: 'gradient' value { "
         "bound_inputs: 1 output_signature { list_value { "
         "values { none_value {} } values {} } } } } }";
}

graph::Graph graph_of(const std::string& text) {
  tensorflow::MetaGraphDef proto;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return must(
      graph::build_graph(must(graph::meta_graph_from_proto(proto, {}))));
}

// y, its gradient by x, and the gradient of that one, at x = 3.
Doubles derivatives(const std::string& text) {
  graph::Graph graph = graph_of(text);
  const graph::Scope s(graph);
  const graph::Output x(graph.find("x")), y(graph.find("y"));
  const graph::Output first = dense_gradients(s, {y}, {x})[0];
  const graph::Output second = dense_gradients(s, {first}, {x})[0];
  return numbers(s, {y, first, second}, {{"x", Tensor::scalar(3.)}});
}

}  // namespace

TEST_CASE("a stored gradient function is used, with what it captures") {
  // An argument of the function, and a tensor inside.
  CHECK(derivatives(model("x:0")) == Doubles{9, 300, 100});
  CHECK(derivatives(model("square:0")) == Doubles{9, 900, 600});
}

TEST_CASE("a stored gradient is refused if what it captures is not there") {
  for (const std::string& text :
       {model("x:0", "g"), model("x:1"), model("none:0"), model("square:1"),
        model("square:x")}) {
    graph::Graph graph = graph_of(text);
    const graph::Scope s(graph);
    (void)dense_gradients(s, {graph::Output(graph.find("y"))},
                          {graph::Output(graph.find("x"))});
    CHECK(s.status().code() == Code::kNotFound);
    CHECK(s.status().message().find("CustomGradient-1") != std::string::npos);
  }
}

TEST_CASE("a graph with a stored gradient is written with it") {
  graph::Graph graph = graph_of(model("x:0"));
  graph::Graph again =
      must(graph::read_graphdef(must(graph::write_graphdef(graph))));
  const graph::Scope s(again);
  const graph::Output x(again.find("x")), y(again.find("y"));
  CHECK(numbers(s, dense_gradients(s, {y}, {x}), {{"x", Tensor::scalar(3.)}}) ==
        Doubles{300});
}
