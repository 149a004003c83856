#include "graph/analysis/topology.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

std::string names(const std::vector<Node*>& nodes) {
  std::string text;
  for (const Node* node : nodes) text += node->name() + " ";
  return text;
}

}  // namespace

TEST_CASE("every node comes after its inputs, back edges apart") {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(9));
  const Counter c = counter(graph, "loop", {start, 0}, {limit, 0});
  CHECK(is_back_edge(*c.merge, 1));
  CHECK_FALSE(is_back_edge(*c.merge, 0));
  const auto order = must(topological_order(graph));
  REQUIRE(order.size() == graph.size());
  CHECK(names(order) == names({graph.nodes().begin(), graph.nodes().end()}));
}

TEST_CASE("a topological order puts edges before the order of insertion") {
  Graph graph;
  Node* a = add(graph, "a", "NoOp");
  Node* b = add(graph, "b", "NoOp");
  Node* c = add(graph, "c", "NoOp");
  graph.add_control_input(a, c);
  CHECK(names(must(topological_order(graph))) == "b c a ");
  graph.remove(std::vector{b});
  CHECK(names(must(topological_order(graph))) == "c a ");
}

TEST_CASE("a cycle is named in the direction of its edges") {
  Graph graph;
  Node* a = add(graph, "a", "NoOp");
  Node* b = add(graph, "b", "NoOp", {}, {}, {a});
  Node* c = add(graph, "c", "NoOp", {}, {}, {b});
  graph.add_control_input(a, c);
  CHECK(message_of(topological_order(graph).status(), Code::kInvalidArgument) ==
        "[graph] the cycle a -> b -> c -> a does not go through a "
        "NextIteration into a Merge");
}

TEST_CASE("an empty graph has an empty order") {
  CHECK(must(topological_order(Graph())).empty());
}
