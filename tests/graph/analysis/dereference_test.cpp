#include "graph/analysis/dereference.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "graph/analysis/extract.h"
#include "graph/builder/builder.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

Program program_of(const Graph& graph, const std::vector<std::string>& fetches,
                   const std::vector<std::string>& targets = {}) {
  std::vector<Endpoint> endpoints;
  for (const std::string& name : fetches)
    endpoints.push_back(must(graph.endpoint(name)));
  std::vector<Node*> nodes;
  for (const std::string& name : targets) nodes.push_back(graph.find(name));
  Program program = must(extract(graph, {}, endpoints, nodes));
  must(dereference(program));
  return program;
}

std::vector<std::string> names_of_controls(const Node& node) {
  std::vector<std::string> names;
  for (const Node* control : node.control_inputs())
    names.push_back(control->name());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a reader waits with its read for all that it waits for") {
  Graph graph;
  const Scope s(graph);
  const Output v = ops::reference_variable(s.named("v"), DataType::kFloat,
                                           PartialShape({2}));
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {2});
  const Output first = ops::no_op(s.named("first"));
  ops::add(s.named("sum").with_control_dependencies({first}), v, x);
  REQUIRE(s.status().ok());
  const Program program = program_of(graph, {"sum"});
  const Node* sum = program.graph.find("sum");
  const Node* read = sum->inputs()[0].node;
  CHECK(read->op() == "_Dereference");
  CHECK(read->name() == "sum/read");
  CHECK(read->inputs()[0].to_string() == "v:0");
  CHECK(names_of_controls(*read) == Names{"first", "x"});
  CHECK(read->output_shape(0).to_string() == "[2]");
  CHECK(sum->inputs()[1].to_string() == "x:0");
}

TEST_CASE("a reader of one reference twice reads it once") {
  Graph graph;
  const Scope s(graph);
  const Output v = ops::reference_variable(s.named("v"), DataType::kFloat,
                                           PartialShape::scalar());
  ops::mul(s.named("square"), v, v);
  REQUIRE(s.status().ok());
  const Program program = program_of(graph, {"square"});
  const Node* square = program.graph.find("square");
  CHECK(square->inputs()[0] == square->inputs()[1]);
  CHECK(program.graph.size() == 3);
}

TEST_CASE("a reference goes to the ops that take it, a fetch gets its value") {
  Graph graph;
  const Scope s(graph);
  const Output v = ops::reference_variable(s.named("v"), DataType::kFloat,
                                           PartialShape::scalar());
  ops::assign(s.named("assign"), v, 1.0f);
  REQUIRE(s.status().ok());
  const Program program = program_of(graph, {"assign"});
  const Node* assign = program.graph.find("assign");
  CHECK(assign->inputs()[0].to_string() == "v:0");
  const Node* fetched = program.fetches[0].node;
  CHECK(fetched->op() == "_Dereference");
  CHECK(fetched->inputs()[0].to_string() == "assign:0");
}

TEST_CASE("a read that may be dead is waited for by a node that tells so") {
  Graph graph;
  const Scope s(graph);
  const Output v = ops::reference_variable(s.named("v"), DataType::kFloat,
                                           PartialShape::scalar());
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const OpResult sides =
      s.named("sides").op("Switch", {s.constant(Tensor::scalar(1.0f)), p});
  ops::add(s.named("sum"), v, sides[1]);
  REQUIRE(s.status().ok());
  const Program program = program_of(graph, {"sum"});
  const Node* read = program.graph.find("sum/read");
  REQUIRE(read != nullptr);
  CHECK(names_of_controls(*read) == Names{"sides/there"});
  CHECK(program.graph.find("sides/there")->inputs()[0].to_string() ==
        "sides:1");
}

TEST_CASE("a loop that changes a variable reads it in each iteration") {
  for (const bool changes : {false, true}) {
    Graph graph;
    const Scope s(graph);
    const Output v = ops::reference_variable(s.named("v"), DataType::kInt32,
                                             PartialShape::scalar());
    const Output value = ops::identity(s.named("value"), v);
    const Outputs loop = while_loop(
        s,
        [&](const Scope& in, const Outputs& i) {
          return ops::less(in, i[0], 3);
        },
        [&](const Scope& in, const Outputs& i) -> Outputs {
          const Output next = ops::add(in.named("next"), i[0], value);
          if (!changes) return {next};
          const Output changed = ops::assign(in, v, next);
          return {ops::identity(in.with_control_dependencies({changed}), next)};
        },
        {0});
    ops::identity(s.named("out"), loop[0]);
    REQUIRE(s.status().ok());
    const Program program = program_of(graph, {"out"});
    const Node* next = program.graph.find("while/next");
    REQUIRE(next != nullptr);
    CHECK((next->inputs()[1].node->op() == "_Dereference") == changes);
  }
}

TEST_CASE("a gather takes the reference, and reads its rows itself") {
  Graph graph;
  const Scope s(graph);
  const Output v =
      ops::reference_variable(s.named("v"), DataType::kFloat, {4, 3});
  const Output rows =
      ops::reference_variable(s.named("rows"), DataType::kInt32, {2});
  s.named("gather").op("Gather", {v, rows});
  s.named("gather_v2").op("GatherV2", {v, rows, Tensor::scalar<int32_t>(0)});
  s.named("gather_nd").op("GatherNd", {v, ops::expand_dims(s, rows, 1)});
  REQUIRE(s.status().ok());
  for (const std::string name : {"gather", "gather_v2", "gather_nd"}) {
    INFO(name);
    const Program program = program_of(graph, {name});
    const Node* gather = program.graph.find(name);
    CHECK(gather->inputs()[0].node->op() == "VariableV2");
    CHECK(gather->inputs()[1].node->op() != "VariableV2");
  }
}
