#include "graph/placement/whole_loops.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "graph/builder/map_fn.h"
#include "graph/topology.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// The names of the loops that cannot be cut.
std::string whole_in(const Graph& graph) {
  const FrameMap frames = must(FrameMap::build(graph));
  const auto order = must(topological_order(graph));
  const auto found = find_whole_loops(graph, frames, order);
  std::string text;
  for (const StaticFrame& frame : frames.frames())
    if (found[size_t(frame.id)]) text += frame.name + " ";
  return text;
}

// "inner" in "outer"; both can be cut.
struct Nest {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(3));
  Counter outer = counter(graph, "outer", {start, 0}, {limit, 0});
  Counter inner = counter(graph, "inner", {outer.body, 0}, {outer.limit, 0});

  std::string whole() const { return whole_in(graph); }
};

}  // namespace

TEST_CASE("loops as they are built can be cut") {
  CHECK(Nest().whole() == "");

  // One that hands on what it captures, with a branch and a loop in it.
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {4});
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const auto below = [&](const Scope& in, const Outputs& v) {
    return ops::less(in, v[0], n);
  };
  while_loop(
      s, below,
      [&](const Scope& in, const Outputs& v) {
        const Outputs inner =
            while_loop(in, below,
                       [](const Scope& deep, const Outputs& w) {
                         return Outputs{ops::add(deep, w[0], 1), w[1]};
                       },
                       {v[0], v[1]});
        const Outputs either = cond(
            in, ops::less(in, v[0], 3),
            [&](const Scope& yes) { return Outputs{ops::neg(yes, inner[1])}; },
            [&](const Scope&) { return Outputs{x}; });
        return Outputs{ops::add(in, v[0], 1), either[0], x};
      },
      {0, x, x}, {.maximum_iterations = 9});
  map_fn(
      s, [](const Scope& in, const Output& v) { return ops::neg(in, v); }, x);
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  CHECK(must(FrameMap::build(graph)).frames().size() == 4);
  CHECK(whole_in(graph) == "");
}

TEST_CASE("a loop without a predicate is whole, and all inside it") {
  Nest nest;
  Graph& graph = nest.graph;
  must(graph.set_input(nest.outer.branch, 1, {nest.outer.less, 0}));
  graph.remove(std::vector{nest.outer.cond});
  CHECK(nest.whole() == "outer inner ");
}

TEST_CASE("a loop inside one that can be cut may be whole") {
  Nest nest;
  Graph& graph = nest.graph;
  must(graph.set_input(nest.inner.branch, 1, {nest.inner.less, 0}));
  graph.remove(std::vector{nest.inner.cond});
  CHECK(nest.whole() == "inner ");
}

TEST_CASE("a loop that something else ends is whole") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* no = constant(graph, "no", Tensor::scalar(false));
  Node* until = add(graph, "until", "Enter", {{no, 0}},
                    {{"frame_name", "outer"}, {"is_constant", true}});
  must(graph.set_input(nest.outer.branch, 1, {until, 0}));
  CHECK(nest.whole() == "outer inner ");
}

TEST_CASE("a predicate may reach its Switch through identities") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* same = add(graph, "same", "Identity", {{nest.outer.cond, 0}});
  must(graph.set_input(nest.outer.branch, 1, {same, 0}));
  CHECK(nest.whole() == "");
}

TEST_CASE("a loop goes on by what both branches in its body give") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* p =
      add(graph, "p", "Less", {{nest.outer.body, 0}, {nest.outer.add, 0}});
  Node* fork = add(graph, "fork", "Switch", {{nest.outer.add, 0}, {p, 0}});
  Node* no = add(graph, "no", "Neg", {{fork, 0}});
  Node* yes = add(graph, "yes", "Identity", {{fork, 1}});
  Node* merge = add(graph, "merge", "Merge", {{no, 0}, {yes, 0}});
  must(graph.set_input(nest.outer.next, 0, {merge, 0}));
  CHECK(nest.whole() == "");
  // One branch that does not depend on the predicate.
  must(graph.set_input(no, 0, {nest.outer.merge, 0}));
  CHECK(nest.whole() == "outer inner ");
  // But for the edge that makes it wait.
  graph.add_control_input(no, nest.outer.body);
  CHECK(nest.whole() == "");
}

TEST_CASE("what an inner loop gives is as dead as what it got") {
  Nest nest;
  must(nest.graph.set_input(nest.outer.next, 0, {nest.inner.exit, 0}));
  CHECK(nest.whole() == "");
  must(nest.graph.set_input(nest.inner.enter, 0, {nest.outer.merge, 0}));
  CHECK(nest.whole() == "outer inner ");
}

TEST_CASE("a loop is whole where something arrives in one iteration only") {
  for (const bool by_data : {true, false}) {
    CAPTURE(by_data);
    Nest nest;
    Node* first = add(nest.graph, "first", "Identity",
                      {{by_data ? nest.inner.enter : nest.inner.merge, 0}});
    if (!by_data) nest.graph.add_control_input(first, nest.inner.enter);
    CHECK(nest.whole() == "inner ");
  }
  Nest nest;
  add(nest.graph, "later", "Identity", {{nest.outer.next, 0}});
  CHECK(nest.whole() == "outer inner ");
}

TEST_CASE("edges into a loop variable are those that come and go") {
  const Nest nest;
  CHECK(is_variable_edge(*nest.outer.merge, 0));
  CHECK(is_variable_edge(*nest.outer.merge, 1));
  CHECK_FALSE(is_variable_edge(*nest.outer.less, 0));
  CHECK_FALSE(is_variable_edge(*nest.outer.less, 1));
}
