// A build with TAGFLOW_KERNELS=basic: loops, conditionals and products run, and
// a graph that needs other kernels is rejected with the reason.
#include <doctest/doctest.h>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary

namespace {

Result<std::vector<Tensor>> run(const Graph& graph, const std::string& fetch,
                                const char* devices = "cpu:1") {
  actors::SessionOptions options;
  options.devices = devices;
  TAGFLOW_ASSIGN(const auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  return session->run({}, {fetch});
}

}  // namespace

TEST_CASE("a loop of products and a conditional runs with the basic kernels") {
  Graph graph;
  const Scope s(graph);
  const Output start =
      ops::constant(s, Tensor::of<float>({2, 2}, {1, 1, 0, 1}));
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 5); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Outputs next = cond(
            in, ops::less(in, v[0], 3),
            [&](const Scope& b) -> Outputs {
              return ops::matmul(b, v[1], start);
            },
            [&](const Scope& b) -> Outputs { return ops::mul(b, v[1], 2); });
        return {ops::add(in, v[0], 1), next[0]};
      },
      {0, start});
  ops::identity(s.named("power"), last[1]);
  REQUIRE(s.ok());
  const auto power = run(graph, "power");
  REQUIRE(power.ok());
  CHECK((*power)[0].flat<float>()[1] == 16);  // 4, then doubled twice
}

TEST_CASE("the error of a kernel that was left out says so") {
  Graph graph;
  const Scope s(graph);
  ops::softmax(s.named("odds"),
               ops::constant(s, Tensor::vector<float>({1, 2})));
  REQUIRE(s.ok());
  for (const char* devices : {"cpu:1", "cpu:2"}) {
    CAPTURE(devices);
    const auto odds = run(graph, "odds", devices);
    REQUIRE(!odds.ok());
    CHECK(odds.status().message().find("TAGFLOW_KERNELS=all") !=
          std::string::npos);
  }
}
