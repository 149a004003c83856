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

TEST_CASE("variables and queues are basic") {
  Graph graph;
  const Scope s(graph);
  const ops::Queue queue = ops::fifo_queue(s, {DataType::kFloat});
  const Output put = ops::enqueue(s, queue, {ops::constant(s, 2.0f)});
  const Outputs taken = ops::dequeue(s.with_control_dependencies({put}), queue);
  const ops::Variable sum =
      ops::variable(s, DataType::kFloat, PartialShape::scalar());
  const Output started = ops::assign(s, sum, 3.0f);
  const Output added =
      ops::assign_add(s.with_control_dependencies({started}), sum, taken[0]);
  ops::read(s.named("total").with_control_dependencies({added}), sum);
  REQUIRE(s.ok());
  const auto result = run(graph, "total");
  REQUIRE(result.ok());
  CHECK((*result)[0].scalar_value<float>() == 5);
}

TEST_CASE("the error of a kernel that was left out says so") {
  Graph graph;
  const Scope s(graph);
  const Output pair = ops::constant(s, Tensor::vector<float>({1, 2}));
  ops::softmax(s.named("odds"), pair);
  ops::top_k(s.named("best"), pair, 1);
  ops::erf(s.named("error"), pair);
  REQUIRE(s.ok());
  for (const char* devices : {"cpu:1", "cpu:2"})
    for (const char* fetch : {"odds", "best", "error"}) {
      CAPTURE(devices);
      CAPTURE(fetch);
      const auto result = run(graph, fetch, devices);
      REQUIRE(!result.ok());
      CHECK(result.status().message().find("TAGFLOW_KERNELS=all") !=
            std::string::npos);
    }
}
