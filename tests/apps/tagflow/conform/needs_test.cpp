#include "apps/tagflow/conform/needs.h"

#include <doctest/doctest.h>

namespace tagflow::apps {
namespace {

using graph::NodeDef;

NodeDef node(std::string name, std::string op,
             std::vector<std::string> inputs = {}, AttrMap attrs = {}) {
  return {std::move(name), std::move(op), std::move(inputs), "",
          std::move(attrs)};
}

Case case_of(std::vector<std::string> fetches,
             std::vector<std::string> targets = {}) {
  Case result;
  CaseRun run;
  run.fetches = std::move(fetches);
  run.targets = std::move(targets);
  result.runs.push_back(std::move(run));
  return result;
}

std::vector<std::string> names_of(const std::vector<NodeDef>& nodes) {
  std::vector<std::string> names;
  for (const NodeDef& def : nodes) names.push_back(def.name);
  return names;
}

TEST_CASE("conform: a fetch needs all that leads to it, by any edge") {
  graph::GraphFile file;
  file.nodes = {node("a", "Const"), node("unrelated", "NoSuchOp"),
                node("b", "Identity", {"a:0", "^c"}), node("c", "NoOp"),
                node("d", "Identity", {"b"})};
  CHECK(names_of(needed_nodes(file, case_of({"b:0"}))) ==
        std::vector<std::string>{"a", "b", "c"});
  CHECK(names_of(needed_nodes(file, case_of({}, {"c"}))) ==
        std::vector<std::string>{"c"});
}

TEST_CASE("conform: a cycle is followed once, an unknown name not at all") {
  graph::GraphFile file;
  file.nodes = {node("merge", "Merge", {"enter", "next"}),
                node("enter", "Enter"),
                node("next", "NextIteration", {"merge"})};
  CHECK(needed_nodes(file, case_of({"next:0", "ghost:0"})).size() == 3);
}

TEST_CASE("conform: the needs of all runs of a case are joined") {
  graph::GraphFile file;
  file.nodes = {node("a", "Const"), node("b", "Const"), node("c", "Const")};
  Case two = case_of({"a:0"});
  two.runs.push_back(case_of({}, {"c"}).runs[0]);
  CHECK(needed_nodes(file, two).size() == 2);
}

TEST_CASE("conform: a gradient needs all that leads to its y or x") {
  graph::GraphFile file;
  file.nodes = {node("a", "Const"), node("y", "Neg", {"a"}), node("x", "Const"),
                node("unrelated", "NoSuchOp")};
  Case of_gradients = case_of({"grad_0:0"});
  of_gradients.gradients = CaseGradients{{"y:0"}, {"x:0"}, 1};
  CHECK(names_of(needed_nodes(file, of_gradients)) ==
        std::vector<std::string>{"a", "y", "x"});
}

TEST_CASE("conform: an op that the engine does not define is missing") {
  CHECK(missing_ops(
            {node("a", "NoSuchOp"), node("b", "Switch"), node("c", "Const")},
            {}) == std::set<std::string>{"NoSuchOp"});
}

TEST_CASE("conform: an op that a used function needs may be missing") {
  graph::FunctionLibrary library;
  graph::FunctionDef outer, inner;
  outer.signature.name = "outer";
  outer.nodes = {
      node("call", "Identity", {}, {{"f", FunctionRef{"inner", {}}}})};
  inner.signature.name = "inner";
  inner.nodes = {node("x", "MissingInside"), node("y", "outer")};
  REQUIRE(library.add(std::move(outer)).ok());
  REQUIRE(library.add(std::move(inner)).ok());
  const std::vector<NodeDef> nodes = {
      node("a", "Identity", {}, {{"f", FunctionRef{"outer", {}}}})};
  CHECK(missing_ops(nodes, library) == std::set<std::string>{"MissingInside"});
}

}  // namespace
}  // namespace tagflow::apps
