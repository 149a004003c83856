#include "actors/checkpoint/graph_variables.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/graph/hand_made.h"

namespace tagflow::actors {
namespace {

namespace ops = graph::ops;
using graph::testing::must;

TEST_CASE("variables are known by their names, of functions too, each once") {
  graph::Graph graph;
  const graph::Scope s(graph);
  ops::variable(s.named("b"), DataType::kFloat, {2, 3});
  ops::variable(s.named("again"), DataType::kFloat, {2, 3},
                {.shared_name = "b"});
  ops::variable(s.named("apart"), DataType::kFloat, {4},
                {.container = "mine", .shared_name = "b"});
  ops::variable(s.named("nameless"), DataType::kFloat, {4},
                {.shared_name = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"});
  ops::reference_variable(s.named("a"), DataType::kInt64, {});
  define_function(
      s, {.name = "f",
          .args = {},
          .results = {{DataType::kFloat, {}}},
          .body = [](const graph::Scope& in,
                     const graph::Outputs&) -> graph::Outputs {
            return {ops::read(
                in, ops::variable(in.named("inner"), DataType::kFloat, {}))};
          }});
  REQUIRE(s.status().ok());
  std::vector<std::string> texts;
  for (const GraphVariable& variable : must(find_variables(graph)))
    texts.push_back(fmt::format("{} {}{} {}", variable.name,
                                dtype_name(variable.dtype),
                                variable.shape.to_string(),
                                variable.is_reference() ? "ref" : "resource"));
  CHECK(texts == std::vector<std::string>{"a int64<unknown> ref",
                                          "b float[2,3] resource",
                                          "inner float<unknown> resource",
                                          "mine/b float[4] resource"});

  // One resource, whichever op of the two makes it.
  s.named("old").op("Variable", {},
                    {{"dtype", DataType::kInt64},
                     {"shape", PartialShape::scalar()},
                     {"shared_name", "a"}});
  REQUIRE(s.status().ok());
  CHECK(must(find_variables(graph)).size() == texts.size());

  ops::reference_variable(s.named("c"), DataType::kInt64, {},
                          {.shared_name = "b"});
  CHECK(find_variables(graph).status().message() ==
        "[snapshot] the graph has two variables \"b\": a VarHandleOp and a "
        "VariableV2");
}

TEST_CASE("no two variables have one name, whatever their containers") {
  graph::Graph graph;
  const graph::Scope s(graph);
  ops::variable(s.named("x"), DataType::kFloat, {4},
                {.container = "a", .shared_name = "b"});
  ops::variable(s.named("y"), DataType::kFloat, {4}, {.shared_name = "a/b"});
  REQUIRE(s.status().ok());
  CHECK(
      find_variables(graph).status().message() ==
      "[snapshot] the graph has two variables \"a/b\": one of container \"a\", "
      "and one of no container");
}

TEST_CASE("a list of names in a message shows the first few names") {
  const std::vector<std::string> texts(20, "x");
  CHECK(list_some(std::span(texts).first(2)) == "x, x");
  CHECK(list_some(texts).ends_with("x, ... (4 more)"));
}

}  // namespace
}  // namespace tagflow::actors
