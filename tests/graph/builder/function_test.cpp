#include "graph/builder/function.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "graph/function.h"

namespace tagflow::graph {
namespace {

constexpr DataType kWhole = DataType::kInt32;

FunctionSpec twice() {
  return {.name = "twice",
          .args = {{"x", kWhole, PartialShape::scalar()}},
          .results = {{kWhole, PartialShape::scalar()}},
          .body = [](const Scope& s, const Outputs& a) -> Outputs {
            return ops::add(s, a[0], a[0]);
          }};
}

// What defining the function says is wrong.
std::string error_of(const FunctionSpec& function) {
  Graph graph;
  const Scope s(graph);
  define_function(s, function);
  CHECK(!s.ok());
  CHECK(graph.library().empty());
  return std::string(s.status().message());
}

}  // namespace

TEST_CASE("a function that is defined can be called") {
  Graph graph;
  const Scope s(graph);
  define_function(s, twice());
  const Outputs y = call(s.named("y"), "twice", {3});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  CHECK(y.size() == 1);
  CHECK(y[0].node()->op() == "twice");
  CHECK(y[0].dtype() == kWhole);
  CHECK(y[0].shape() == PartialShape::scalar());
  const FunctionDef* function = graph.library().find("twice");
  REQUIRE(function != nullptr);
  CHECK(function->signature.inputs[0].name == "x");
  CHECK(function->nodes.size() == 1);
  CHECK(function->nodes[0].inputs == std::vector<std::string>{"x", "x"});
  CHECK(function->ret.at("result_0") == "AddV2:z:0");
  CHECK(!function->signature.is_stateful);
}

TEST_CASE("functions may call themselves and each other") {
  Graph graph;
  const Scope s(graph);
  const auto spec = [](std::string name, std::string other) -> FunctionSpec {
    return {.name = std::move(name),
            .args = {{"n", kWhole, PartialShape::scalar()}},
            .results = {{kWhole, PartialShape::scalar()}},
            .body = [other](const Scope& in, const Outputs& a) {
              return call(in, other, {a[0]});
            }};
  };
  define_functions(s, {spec("a", "b"), spec("b", "a"), spec("c", "c")});
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  CHECK(graph.library().size() == 3);
  CHECK(graph.library().find("a")->nodes[0].op == "b");
}

TEST_CASE("a result of unknown shape is checked against what is declared") {
  Graph graph;
  const Scope s(graph);
  FunctionSpec function = twice();
  function.args[0].shape = {};
  define_function(s, function);
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  CHECK(graph.library().find("twice")->nodes.back().op == "EnsureShape");
}

TEST_CASE("a function that has side effects is stateful") {
  Graph graph;
  const Scope s(graph);
  FunctionSpec function = twice();
  function.body = [](const Scope& in, const Outputs& a) -> Outputs {
    in.op("Print", {a[0], a[0]});
    return a[0];
  };
  define_function(s, function);
  REQUIRE(s.ok());
  CHECK(graph.library().find("twice")->signature.is_stateful);
  CHECK(graph.library().find("twice")->ret.at("result_0") == "x");
}

TEST_CASE("a body that is not what was declared is refused") {
  FunctionSpec function = twice();
  function.results.push_back({kWhole, {}});
  CHECK(error_of(function) ==
        "[function] \"twice\": the body returns 1 results, 2 are declared");
  function = twice();
  function.results[0] = {DataType::kFloat, {2}};
  CHECK(error_of(function) ==
        "[function] \"twice\": result 0 is int32[], declared as float[2]");
  function = twice();
  function.body = [](const Scope& in, const Outputs&) -> Outputs {
    return Output(ops::no_op(in));
  };
  CHECK(error_of(function) == "[function] \"twice\": result 0 is not a tensor");
  function = twice();
  function.body = nullptr;
  CHECK(error_of(function) == "[function] \"twice\": it has no body");
  function = twice();
  function.name = "Add";
  CHECK(error_of(function) == "[function] \"Add\": an op has this name");
  function = twice();
  function.body = [](const Scope& in, const Outputs& a) -> Outputs {
    return ops::add(in, a[0], true);
  };
  CHECK(error_of(function).starts_with("[function] \"twice\": "));
}

TEST_CASE("a function that is not there cannot be called") {
  Graph graph;
  const Scope s(graph);
  CHECK(call(s, "nobody", {1}).empty());
  CHECK(s.status().code() == Code::kNotFound);
  CHECK(s.status().message() == "[call] no function \"nobody\" in the library");
}

TEST_CASE("a body cannot use a tensor from around it") {
  Graph graph;
  const Scope s(graph);
  const Output outside = ops::constant(s, 1);
  FunctionSpec function = twice();
  function.body = [&](const Scope& in, const Outputs& a) -> Outputs {
    return ops::add(in, a[0], outside);
  };
  define_function(s, function);
  CHECK(s.status().code() == Code::kInvalidArgument);
  CHECK(s.status().message() ==
        "[function] \"twice\": \"AddV2\" uses \"Const\", which is of another "
        "graph");
}

}  // namespace tagflow::graph
