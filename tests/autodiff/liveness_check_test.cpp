#include "autodiff/liveness_check.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT

TEST_CASE("a sum of terms that are not equally live is found") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output x = graph::ops::constant(s, 1.0);
  const graph::Output p = graph::ops::constant(s, true);
  const graph::Output taken = graph::ops::switch_(s, x, p).on_true;
  const graph::Output same =
      graph::ops::add_n(s, {taken, graph::ops::neg(s, taken)});
  REQUIRE(s.ok());
  CHECK(check_liveness(graph, 0, {{taken.endpoint(), same.endpoint()}}).ok());

  const graph::Output mixed = graph::ops::add_n(s, {x, taken});
  const Status wrong = check_liveness(graph, 0, {});
  CHECK(wrong.code() == Code::kInternal);
  CHECK(wrong.message().find(mixed.node()->name()) != std::string::npos);
  // What was there before is not looked at.
  CHECK(check_liveness(graph, graph::NodeId(graph.end_id()), {}).ok());
}

TEST_CASE("a gradient that is not as live as its tensor is found") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output x = graph::ops::constant(s, 1.0);
  const graph::Output p = graph::ops::constant(s, true);
  const graph::Output taken = graph::ops::switch_(s, x, p).on_true;
  REQUIRE(s.ok());
  const Status wrong =
      check_liveness(graph, 0, {{x.endpoint(), taken.endpoint()}});
  CHECK(wrong.code() == Code::kInternal);
  CHECK(wrong.message().find("is not live exactly where \"" +
                             x.node()->name()) != std::string::npos);
}
