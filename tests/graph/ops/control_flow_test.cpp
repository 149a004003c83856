#include <doctest/doctest.h>

#include "graph/graph.h"
#include "graph/op_registry.h"

namespace tagflow::graph {

namespace {

Endpoint placeholder(Graph& graph, DataType dtype, PartialShape shape) {
  const auto node = graph.add(graph.unique_name("x"), "Placeholder", {},
                              {{"dtype", dtype}, {"shape", std::move(shape)}});
  REQUIRE(node.ok());
  return {*node, 0};
}

std::string message_of(const Result<Node*>& node) {
  return node.status().to_string();
}

bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every op of the control-flow family is defined") {
  for (const char* op : {"Const",
                         "Identity",
                         "IdentityN",
                         "NoOp",
                         "Placeholder",
                         "PlaceholderWithDefault",
                         "_Arg",
                         "_Retval",
                         "_Send",
                         "_Recv",
                         "_HostSend",
                         "_HostRecv",
                         "Switch",
                         "Merge",
                         "Enter",
                         "Exit",
                         "NextIteration",
                         "LoopCond",
                         "ControlTrigger",
                         "StopGradient",
                         "PreventGradient",
                         "RefSwitch",
                         "RefMerge",
                         "RefEnter",
                         "RefExit",
                         "RefNextIteration",
                         "RefIdentity",
                         "RefSelect",
                         "_SwitchN",
                         "Assert",
                         "Print",
                         "PrintV2",
                         "Abort"}) {
    CAPTURE(op);
    CHECK(OpRegistry::global().find(op).ok());
  }
}

TEST_CASE("a placeholder's shape is unknown if nothing is said") {
  Graph graph;
  const auto node =
      graph.add("x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  REQUIRE(node.ok());
  CHECK((*node)->output_shape(0).to_string() == "<unknown>");
}

TEST_CASE("a constant must be of the type it says") {
  Graph graph;
  const auto node =
      graph.add("c", "Const", {},
                {{"dtype", DataType::kInt32}, {"value", Tensor::scalar(1.0f)}});
  CHECK(contains(message_of(node),
                 "the value is float[], the attribute dtype says int32"));
}

TEST_CASE("a default must fit its placeholder") {
  Graph graph;
  const Endpoint inputs[] = {placeholder(graph, DataType::kFloat, {2})};
  const auto good = graph.add("good", "PlaceholderWithDefault", inputs,
                              {{"shape", PartialShape{-1}}});
  REQUIRE(good.ok());
  CHECK((*good)->output_shape(0).to_string() == "[?]");
  const auto bad = graph.add("bad", "PlaceholderWithDefault", inputs,
                             {{"shape", PartialShape{3}}});
  CHECK(contains(message_of(bad),
                 "the default has shape [2], the attribute says [3]"));
}

TEST_CASE("Switch passes its data's shape to both outputs") {
  Graph graph;
  const Endpoint data = placeholder(graph, DataType::kFloat, {2, -1});
  const Endpoint inputs[] = {data, placeholder(graph, DataType::kBool, {})};
  const auto node = graph.add("s", "Switch", inputs);
  REQUIRE(node.ok());
  CHECK((*node)->output_shape(0).to_string() == "[2,?]");
  CHECK((*node)->output_shape(1).to_string() == "[2,?]");
  const Endpoint vector[] = {data, placeholder(graph, DataType::kBool, {2})};
  CHECK(!graph.add("t", "Switch", vector).ok());
}

TEST_CASE("a Merge's shape is what its inputs agree on") {
  Graph graph;
  const Endpoint inputs[] = {placeholder(graph, DataType::kFloat, {2, 3}),
                             placeholder(graph, DataType::kFloat, {2, 4})};
  const auto node = graph.add("m", "Merge", inputs);
  REQUIRE(node.ok());
  CHECK((*node)->output_shape(0).to_string() == "[2,?]");
  CHECK((*node)->output_shape(1).to_string() == "[]");
  CHECK((*node)->output_dtypes()[1] == DataType::kInt32);
}

TEST_CASE("a Merge with an open back edge knows nothing") {
  Graph graph;
  const Endpoint data = placeholder(graph, DataType::kFloat, {2});
  const auto enter =
      graph.add("enter", "Enter", std::span(&data, 1), {{"frame_name", "f"}});
  REQUIRE(enter.ok());
  CHECK((*enter)->output_shape(0).to_string() == "[2]");
  const Endpoint inputs[] = {{*enter, 0}, {nullptr, 0}};
  const auto merge = graph.add("m", "Merge", inputs);
  REQUIRE_MESSAGE(merge.ok(), message_of(merge));
  CHECK((*merge)->output_shape(0).to_string() == "<unknown>");
}

TEST_CASE("an ensured shape joins what both sides know") {
  Graph graph;
  const Endpoint inputs[] = {placeholder(graph, DataType::kFloat, {2, -1})};
  const auto node =
      graph.add("e", "EnsureShape", inputs, {{"shape", PartialShape{-1, 3}}});
  REQUIRE(node.ok());
  CHECK((*node)->output_shape(0).to_string() == "[2,3]");
  const auto bad =
      graph.add("f", "EnsureShape", inputs, {{"shape", PartialShape{4, 3}}});
  CHECK(contains(message_of(bad), "the input has shape [2,?]"));
}

TEST_CASE("an assertion's condition is a scalar") {
  Graph graph;
  const Endpoint inputs[] = {placeholder(graph, DataType::kBool, {3}),
                             placeholder(graph, DataType::kFloat, {})};
  CHECK(!graph.add("a", "Assert", inputs).ok());
}

}  // namespace tagflow::graph
