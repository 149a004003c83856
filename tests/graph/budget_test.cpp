// Budgets, and the stages of graph/ that ask them.
#include "graph/budget.h"

#include <doctest/doctest.h>

#include "graph/analysis/loop_shapes.h"
#include "graph/builder/growth.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/file/graphdef.h"
#include "graph/functions/lower.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/hand_made_functions.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// More nodes than a budget lets pass between two looks at the clock.
constexpr int kMany = 1000;

Budget::Options over() {
  return {.timeout = std::chrono::seconds(2),
          .start = Budget::Clock::now() - std::chrono::hours(1)};
}

void check_late(const Status& status, const std::string& stage) {
  const std::string text = message_of(status, Code::kDeadlineExceeded);
  CAPTURE(text);
  CHECK(contains(text, "[session] the time-out of 2 s passed while " + stage));
}

Graph chain() {
  Graph graph;
  const Scope s(graph);
  Output y = ops::constant(s, 1.0f);
  for (int i = 0; i < kMany; ++i) y = ops::square(s, y);
  must(s.status());
  return graph;
}

}  // namespace

TEST_CASE("a budget ends by its time-out or its cancellation, and says where") {
  Budget late(over());
  late.begin("nodes were counted");
  CHECK(late.check(10).ok());  // before the first look at the clock
  CHECK(late.check(1000).to_string() ==
        "DeadlineExceeded: [session] the time-out of 2 s passed while nodes "
        "were counted (1010 nodes so far)");
  late.begin("all was put together");
  CHECK(late.look().message() ==
        "[session] the time-out of 2 s passed while all was put together");
  bool is_cancelled = false;
  Budget other({.timeout = std::chrono::hours(1),
                .is_cancelled = [&] { return is_cancelled; }});
  other.begin("nodes were counted");
  CHECK(other.look().ok());
  is_cancelled = true;
  CHECK(other.look().to_string() ==
        "Cancelled: [session] the run was cancelled while nodes were counted");
  Budget endless({});
  CHECK(endless.check(uint64_t(1) << 60).ok());
  CHECK(check_budget(nullptr).ok());
}

TEST_CASE("a budget ends the reading of a file, and the building of a graph") {
  const Graph graph = chain();
  const std::string bytes = must(write_graphdef(graph));
  const std::string text = must(write_graphdef_text(graph));
  Budget budget(over());
  const Limits limits{.budget = &budget};
  check_late(parse_graphdef(bytes, limits).status(), "the file was read");
  check_late(parse_graphdef_text(text, limits).status(), "the file was read");
  check_late(build_graph(must(parse_graphdef(bytes)), &budget).status(),
             "the graph was built");
}

TEST_CASE("a budget ends the inlining of functions") {
  Program program;
  FunctionDef doubled =
      function("doubled", {"n: int32"}, {"r: int32"}, {}, {{"r", "0:z:0"}});
  for (int i = 0; i < kMany; ++i)
    doubled.nodes.push_back(body_int(std::to_string(i), "Add", "n", "n"));
  must(program.graph.library().add(doubled));
  must(program.graph.extend(std::vector<NodeDef>{
      def("x", "Placeholder", {}, {{"dtype", DataType::kInt32}}),
      def("y", "doubled", {"x"})}));
  program.fetches.push_back({program.graph.find("y"), 0});
  Budget budget(over());
  const Limits limits{.budget = &budget};
  check_late(lower_functions(program, limits), "functions were inlined (1");
  CHECK(program.graph.size() == 2);
}

TEST_CASE("a budget ends the check of a graph that grows, until the next one") {
  const Graph graph = chain();
  GrowingCheck check;
  Budget budget(over());
  check_late(check.run(graph, &budget), "the graph was checked");
  CHECK(!check.covers(graph));
  must(check.run(graph));
  CHECK(check.covers(graph));
}

TEST_CASE("a budget ends the search for the loops of a graph") {
  const Graph graph = chain();
  Budget budget(over());
  budget.begin("loops were found");
  check_late(FrameMap::build(graph, {.budget = &budget}).status(),
             "loops were found (");
  // The check of a graph asks as often for its nodes as for their loops.
  Budget second({.timeout = std::chrono::hours(1),
                 .is_cancelled = [&, looks = 0]() mutable {
                   return ++looks > kMany / 256;
                 }});
  CHECK(
      contains(message_of(GrowingCheck().run(graph, &second), Code::kCancelled),
               "the graph was checked (1"));
}

TEST_CASE("a budget ends the check of a graph, and its passes") {
  const Graph graph = chain();
  const std::string last = graph.nodes().back()->name();
  Budget budget(over());
  check_late(validate(graph, {.budget = &budget}), "the graph was checked");
  for (const Pass pass : {Pass::kFold, Pass::kCse}) {
    Program program = program_of(graph, {last});
    check_late(
        optimize(program, PassSet::only(pass), {.budget = &budget}),
        fmt::format("the pass \"{}\" ran", PassSet::only(pass).to_string()));
  }
  // The pass itself asks, too, as evaluations may take long.
  Program program = program_of(graph, {last});
  budget.begin("it folded");
  check_late(fold_constants(program, {.budget = &budget}).status(),
             "it folded (");
}

TEST_CASE("a budget ends the inference of shapes of loops") {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(9));
  for (int i = 0; i < kMany / 2; ++i)
    counter(graph, fmt::format("loop_{}", i), {start, 0}, {limit, 0});
  // Only what is not known is inferred.
  for (Node* node : graph.nodes())
    if (node->is_merge()) graph.set_output_shape(node, 0, PartialShape());
  Budget budget(over());
  check_late(infer_loop_shapes(graph, {}, &budget), "shapes were inferred (");
}

TEST_CASE("a graph that is built grows up to its limit, while time is left") {
  Graph graph;
  const Scope s(graph);
  limit_growth(s, {.max_nodes = 3});
  Output y = ops::constant(s, 1.0f);
  for (int i = 0; i < kMany; ++i) y = ops::square(s.named("y"), y);
  CHECK(graph.size() == 3);
  CHECK(s.status().to_string() ==
        "ResourceExhausted: [graph] \"y_2\" is one more than the limit of 3 "
        "nodes");
  Graph other;
  const Scope t(other);
  Budget budget(over());
  limit_growth(t, {.budget = &budget});
  y = ops::constant(t, 1.0f);
  for (int i = 0; i < kMany; ++i) y = ops::square(t, y);
  check_late(t.status(), "");
}
