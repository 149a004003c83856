#include "graph/functions/check.h"

#include <doctest/doctest.h>

#include "graph/function_uses.h"
#include "tests/graph/hand_made_functions.h"

namespace tagflow::graph {
namespace {

// A graph over a library.
struct Checked {
  Graph graph;

  void define(FunctionDef made) {
    REQUIRE(graph.library().add(std::move(made)).ok());
  }
  void add(NodeDef def) {
    const Status status = graph.extend(std::vector<NodeDef>{std::move(def)});
    INFO(status.to_string());
    REQUIRE(status.ok());
  }
  Status check(const std::string& name) const {
    size_t budget = 1000;
    return check_call(graph, *graph.find(name), budget);
  }
  Status check_alone(const std::string& name) const {
    size_t budget = 1000;
    return check_function(*graph.library().find(name), graph.library(), budget);
  }
};

// One node, whose output `output` is the result.
FunctionDef with_body(const std::string& name, NodeDef node,
                      const std::string& output = "z") {
  const std::string tensor = node.name + ":" + output + ":0";
  return function(name, {"n: int32"}, {"r: int32"}, {std::move(node)},
                  {{"r", tensor}});
}

NodeDef called(const std::string& name, const std::string& callee) {
  return body_node(name, "PartitionedCall", {"x"},
                   int_ports(1, 1, {{"f", call_of(callee)}}));
}

NodeDef int_placeholder(const std::string& name) {
  return body_node(name, "Placeholder", {}, {{"dtype", DataType::kInt32}});
}

std::vector<std::string> names_of(
    const std::vector<const FunctionDef*>& functions) {
  std::vector<std::string> names;
  for (const FunctionDef* each : functions) names.push_back(each->name());
  return names;
}

}  // namespace

TEST_CASE("the check passes a call of a valid function") {
  Checked c;
  c.define(with_body("plus", body_int("sum", "Sub", "n", "n")));
  c.add(int_placeholder("x"));
  c.add(called("call", "plus"));
  CHECK(c.check("call").ok());
  CHECK(c.check("x").ok());
  CHECK(c.check_alone("plus").ok());
}

TEST_CASE("a function that is not there is missed by the check of a call") {
  Checked c;
  c.add(int_placeholder("x"));
  c.add(called("call", "ghost"));
  CHECK(c.check("call").to_string() ==
        "NotFound: [PartitionedCall] node \"call\": no function \"ghost\" in "
        "the library");
}

TEST_CASE("a body's error is found at the call, through other functions") {
  Checked c;
  c.define(with_body("inner", body_int("sum", "Subb", "n", "n")));
  c.define(with_body("outer",
                     body_node("call", "PartitionedCall", {"n"},
                               int_ports(1, 1, {{"f", call_of("inner")}})),
                     "output"));
  c.add(int_placeholder("x"));
  c.add(called("first", "outer"));
  CHECK(c.check("first").message() ==
        "[PartitionedCall] node \"first/call\": function \"inner\": [Subb] "
        "node \"sum\": [ops] unknown op \"Subb\", did you mean \"Sub\"?");
  CHECK(c.check_alone("inner").message() ==
        "[function] function \"inner\": [Subb] node \"sum\": [ops] unknown op "
        "\"Subb\", did you mean \"Sub\"?");
}

TEST_CASE("a result of another type than the body's tensor is refused") {
  Checked c;
  FunctionDef wrong =
      function("wrong", {"n: int32"}, {"r: float"}, {}, {{"r", "n"}});
  c.define(std::move(wrong));
  c.add(int_placeholder("x"));
  c.add(body_node("call", "PartitionedCall", {"x"},
                  {{"f", call_of("wrong")},
                   {"Tin", std::vector<DataType>{DataType::kInt32}},
                   {"Tout", std::vector<DataType>{DataType::kFloat}}}));
  CHECK(c.check("call").message() ==
        "[PartitionedCall] node \"call\": result 0 of function \"wrong\" is "
        "float, "
        "its body gives int32");
}

TEST_CASE("a function that needs attributes is checked at its calls") {
  Checked c;
  c.define(
      function("typed", {"n: T"}, {"r: T"},
               {body_node("same", "Neg", {"n"}, {{"T", AttrPlaceholder{"T"}}})},
               {{"r", "same:y:0"}}, {"T: type"}));
  c.add(int_placeholder("x"));
  c.add(body_node("right", "typed", {"x"}, {{"T", DataType::kInt32}}));
  c.add(body_node("flag", "Placeholder", {}, {{"dtype", DataType::kBool}}));
  c.add(body_node("wrong", "typed", {"flag"}, {{"T", DataType::kBool}}));
  CHECK(c.check_alone("typed").ok());
  CHECK(c.check("right").ok());
  CHECK(c.check("wrong").message() ==
        "[typed] node \"wrong\": [Neg] node \"wrong/same\": attribute \"T\" is "
        "bool, allowed are bfloat16, half, float, double, int8, int16, int32, "
        "int64, complex64, complex128");
}

TEST_CASE("the shapes and values that a call reads reach the body") {
  Checked c;
  c.define(function(
      "reshaped", {"x: float", "s: int32"}, {"r: float"},
      {body_node("r", "Reshape", {"x", "s"},
                 {{"T", DataType::kFloat}, {"Tshape", DataType::kInt32}})},
      {{"r", "r:output:0"}}));
  c.add(body_node("x", "Placeholder", {},
                  {{"dtype", DataType::kFloat}, {"shape", PartialShape({3})}}));
  c.add(body_const("s", Tensor::vector<int32_t>({2})));
  c.add(body_node("call", "reshaped", {"x", "s"}));
  CHECK(c.check("call").message() ==
        "[reshaped] node \"call\": [Reshape] node \"call/r\": cannot reshape 3 "
        "elements of [3] to [2]");
}

TEST_CASE("the check of a recursive function ends") {
  Checked c;
  c.define(with_body("f",
                     body_node("z", "PartitionedCall", {"n"},
                               int_ports(1, 1, {{"f", call_of("f")}})),
                     "output"));
  c.add(int_placeholder("x"));
  c.add(called("call", "f"));
  CHECK(c.check("call").to_string() == "OK");
}

TEST_CASE("checks make as many nodes as they may, and no more") {
  Checked c;
  c.define(with_body("plus", body_int("sum", "Sub", "n", "n")));
  c.add(int_placeholder("x"));
  c.add(called("call", "plus"));
  size_t budget = 20;
  CHECK(check_call(c.graph, *c.graph.find("call"), budget).ok());
  CHECK(budget < 20);
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i)
    status = check_call(c.graph, *c.graph.find("call"), budget);
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message().find("the graph has more than ") != std::string::npos);
}

TEST_CASE("all functions that nodes lead to are found, each once") {
  Checked c;
  c.define(
      function("a", {}, {}, {body_node("b1", "b"), body_node("b2", "b")}, {}));
  c.define(function("b", {}, {}, {body_node("again", "a")}, {}));
  c.define(function("idle", {}, {}, {}, {}));
  const std::vector<NodeDef> nodes = {
      body_node("n", "StatelessIf", {}, {{"then_branch", call_of("b")}}),
      body_node("m", "StatelessCase", {},
                {{"branches", std::vector<FunctionRef>{call_of("ghost")}}})};
  CHECK(names_of(reached_functions(nodes, c.graph.library())) ==
        std::vector<std::string>{"a", "b"});
  CHECK(named_functions("a", {}, c.graph.library()) ==
        std::vector<std::string>{"a"});
  CHECK(named_functions(nodes[1].op, nodes[1].attrs, c.graph.library()) ==
        std::vector<std::string>{"ghost"});
}

TEST_CASE("all unknown ops are named at once, with where they are") {
  Checked c;
  c.define(function("f", {}, {},
                    {body_node("p", "Foo"), body_node("q", "Identty")}, {}));
  const std::vector<NodeDef> nodes = {
      body_node("n", "LMDBDataset"), body_node("m", "LMDBDataset"),
      body_node("k", "NoOp"), body_node("l", "f")};
  const FunctionLibrary& library = c.graph.library();
  const std::string files =
      "unknown op \"LMDBDataset\": no dataset reads files of LMDB, as in "
      "TensorFlow 2.21; LMDBReader does (node \"n\" and 1 more)";
  CHECK(check_ops(nodes, {}, library).to_string() ==
        "Unimplemented: [ops] " + files);
  CHECK(
      check_ops(nodes, reached_functions(nodes, library), library).message() ==
      "[ops] unknown op \"Foo\", did you mean \"For\"? (node \"p\" of "
      "function \"f\"); unknown op \"Identty\", did you mean "
      "\"Identity\"? (node \"q\" of function \"f\"); " +
          files);
  CHECK(check_ops({body_node("l", "f")}, {}, library).ok());
}

TEST_CASE("the check of unknown ops names the first and counts the rest") {
  std::vector<NodeDef> nodes;
  for (int i = 0; i < 60; ++i)
    nodes.push_back(body_node("n" + std::to_string(i),
                              "NoSuchOpAtAll" + std::to_string(i)));
  const std::string message(check_ops(nodes, {}, {}).message());
  CHECK(message.ends_with("; and 10 more"));
}

}  // namespace tagflow::graph
