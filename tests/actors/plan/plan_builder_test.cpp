// Nodes that become edges give the same results as nodes do.
#include <doctest/doctest.h>

#include "tests/actors/counting_loop.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using tagflow::graph::testing::const_def;
using tagflow::graph::testing::def;

namespace {

// The fetch, for n trips, in each configuration.
void check(const Graph& graph, std::vector<Feed> feeds,
           const std::string& fetch, int n, int expected) {
  feeds.emplace_back("n", Tensor::scalar(n));
  std::vector<SessionOptions> all = configurations();
  all.emplace_back().passes = PassSet::only(Pass::kEdges);
  for (const SessionOptions& options : all) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (int i = 0; i < 2; ++i)
      CHECK(must_run(*session, feeds, {fetch})[0].scalar_value<int32_t>() ==
            expected);
  }
}

}  // namespace

TEST_CASE("a loop's Merge says by its index where its value came from") {
  const Graph graph =
      counting_loop({def("after", "AddV2", {"sum_switch:1", "merge:1"})},
                    loop_variable("sum", "zero", "after", DataType::kInt32));
  // 0 in the first of 5, 1 in the others.
  check(graph, {}, "sum_exit", 5, 4);
}

// The Enter is dead, and a third input has the first value.
TEST_CASE("a loop's Merge may have more inputs than its Enter and back edge") {
  const Graph graph =
      counting_loop({placeholder_def("p", DataType::kBool),
                     def("dead", "Switch", {"one", "p"}),
                     def("v", "Enter", {"dead:1"}, into_loop()),
                     def("zero_inside", "Enter", {"zero"}, into_loop(true)),
                     def("is_first", "Equal", {"merge", "zero_inside"}),
                     def("first", "Switch", {"limit", "is_first"}),
                     def("v_merge", "Merge", {"v", "v_next", "first:1"},
                         {{"T", DataType::kInt32}}),
                     def("v_switch", "Switch", {"v_merge", "cond"}),
                     def("v_plus", "AddV2", {"v_switch:1", "step"}),
                     def("v_next", "NextIteration", {"v_plus"}),
                     def("v_exit", "Exit", {"v_switch"})});
  check(graph, {{"p", Tensor::scalar(false)}}, "v_exit", 5, 10);
}

TEST_CASE("a node may wait for a loop constant that it does not read") {
  const Graph graph =
      counting_loop({def("minus", "Neg", {"switch:1", "^limit"}),
                     def("more", "AddV2", {"sum_switch:1", "minus"})},
                    loop_variable("sum", "zero", "more", DataType::kInt32));
  check(graph, {}, "sum_exit", 5, -10);
}

TEST_CASE("a frame that only a constant enters runs all the same") {
  const Graph graph = counting_loop(
      {const_def("five", Tensor::scalar(5)),
       def("in", "Enter", {"five"},
           {{"frame_name", "alone"}, {"is_constant", true}}),
       def("inside", "Neg", {"in"}), def("out", "Exit", {"inside"}),
       def("twice", "AddV2", {"out", "exit"})});
  check(graph, {}, "twice", 3, -2);
}
