#include "apps/tagflow/model/model_check.h"

#include <doctest/doctest.h>

#include "graph/analysis/frames.h"
#include "tests/graph/hand_made_functions.h"

namespace tagflow::apps {
namespace {

using graph::body_node;

// A call of "good", which "main" gives, and one of "save", whose body has an
// op that nobody knows, as has "lonely", which nobody calls.
Model make_model() {
  Model model;
  auto& library = model.graph.library();
  REQUIRE(library
              .add(graph::function("good", {"n: int32"}, {"r: int32"}, {},
                                   {{"r", "n"}}))
              .ok());
  for (const char* name : {"save", "lonely"})
    REQUIRE(library
                .add(graph::function(name, {"n: int32"}, {"r: int32"},
                                     {body_node("s", "NoSuchOp", {"n"})},
                                     {{"r", "s:0"}}))
                .ok());
  const auto call = [](const char* name, const char* function) {
    return body_node(name, "PartitionedCall", {"x"},
                     graph::int_ports(1, 1, {{"f", graph::call_of(function)}}));
  };
  REQUIRE(
      model.graph
          .extend(std::vector<graph::NodeDef>{
              body_node("x", "Placeholder", {}, {{"dtype", DataType::kInt32}}),
              call("y", "good"), call("saved", "save"),
              body_node("init", "NoOp")})
          .ok());
  return model;
}

GraphSummary check(const Model& model) {
  const auto frames = graph::FrameMap::build(model.graph);
  REQUIRE(frames.ok());
  const Nodes nodes(model.graph.nodes().begin(), model.graph.nodes().end());
  GraphSummary summary = summarise(model.graph, nodes, *frames);
  check_functions(model, nodes, true, summary);
  return summary;
}

}  // namespace

TEST_CASE("a graph's check looks at all functions, called or not") {
  const GraphSummary summary = check(make_model());
  REQUIRE(summary.errors.size() == 1);
  CHECK(summary.errors[0].find("of function \"save\"") != std::string::npos);
  REQUIRE(summary.warnings.size() == 1);
  CHECK(summary.warnings[0].find("function \"lonely\"") != std::string::npos);
}

TEST_CASE("a model's check skips nodes that no signature needs") {
  Model model = make_model();
  model.signatures["main"] = {{{"x", "x:0"}}, {{"y", "y:0"}}};
  GraphSummary summary = check(model);
  CHECK(summary.errors.empty());
  CHECK(summary.warnings.empty());
  // A signature that does something, and gives nothing, is one too.
  model.signatures.clear();
  model.signatures["__saved_model_init_op"] = {{}, {{"op", "init"}}};
  summary = check(model);
  CHECK(summary.errors.empty());
  CHECK(summary.warnings.empty());
}

TEST_CASE("a model's check reports errors in nodes that a signature needs") {
  Model model = make_model();
  model.signatures["main"] = {{{"x", "x:0"}}, {{"y", "saved:0"}}};
  const GraphSummary summary = check(model);
  REQUIRE(summary.errors.size() == 1);
  CHECK(summary.errors[0].find("(node \"s\" of function \"save\")") !=
        std::string::npos);
  CHECK(summary.warnings.empty());
}

}  // namespace tagflow::apps
