// Random ops in the engine: the numbers are the same in every configuration,
// and differ between runs, whatever else runs in between.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "actors/shared_state.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

Output uniform(const Scope& s, int64_t seed, int64_t size = 4) {
  return s.op("RandomUniform", {s.constant(Tensor::of<int64_t>({1}, {size}))},
              {{"dtype", DataType::kDouble}, {"seed", seed}});
}

// "train" draws beside a loop, in it, and in a function that is called twice;
// "evaluate" draws apart.
Graph drawing() {
  Graph graph;
  const Scope s(graph);
  define_function(
      s, {.name = "noise",
          .args = {{"x", DataType::kDouble, {}}},
          .results = {{DataType::kDouble, {}}},
          .body = [](const Scope& in, const Outputs& args) -> Outputs {
            return {ops::add(in, args[0], uniform(in.named("draw"), 0))};
          }});
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Output first = uniform(s.named("first"), 0);
  const Output big = uniform(s.named("big"), 0, 100000);
  const Outputs loop = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output drawn =
            uniform(in.named("drawn").with_control_dependencies({v[0]}), 0);
        return {ops::add(in, v[0], 1),
                ops::add(in, ops::mul(in, v[1], 3.0), drawn)};
      },
      {0, first});
  const Output called = call(s, "noise", {call(s, "noise", {loop[1]})[0]})[0];
  ops::add(s.named("train"), called, ops::reduce_sum(s, big, {0}));
  ops::identity(s.named("evaluate"), uniform(s.named("apart"), 0));
  // Of equal seeds, which are not 0.
  ops::identity(s.named("twin_1"), uniform(s.named("a"), 5));
  ops::identity(s.named("twin_2"), uniform(s.named("b"), 5));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

Tensor fetch(Session& session, const std::string& name) {
  return must_run(session, {{"n", Tensor::scalar<int32_t>(7)}}, {name})[0];
}

}  // namespace

TEST_CASE("random numbers are the same in every configuration") {
  const Graph graph = drawing();
  std::vector<Tensor> expected;
  for (uint64_t index = 0; index < 120; ++index) {
    SessionOptions options = configuration(index * 7);
    options.seed = 11;
    INFO(describe(options));
    const auto session = make_session(options, graph);
    for (size_t run = 0; run < 2; ++run) {
      const Tensor drawn = fetch(*session, "train");
      if (expected.size() <= run) expected.push_back(drawn);
      CHECK(identical(drawn, expected[run]));
    }
  }
  CHECK_FALSE(identical(expected[0], expected[1]));
}

TEST_CASE("random numbers of a run do not depend on other runs in between") {
  const Graph graph = drawing();
  SessionOptions options;
  options.seed = 3;
  const auto plain = make_session(options, graph);
  const auto mixed = make_session(options, graph);
  for (int run = 0; run < 3; ++run) {
    fetch(*mixed, "evaluate");
    CHECK(identical(fetch(*plain, "train"), fetch(*mixed, "train")));
  }
  // Who restores the counts goes on where they were taken.
  const auto third = make_session(options, graph);
  third->shared_state()->run_counts().restore(
      plain->shared_state()->run_counts().all());
  CHECK(identical(fetch(*plain, "train"), fetch(*third, "train")));
}

TEST_CASE("random ops of equal seeds agree, sessions without a seed do not") {
  const Graph graph = drawing();
  const auto first = make_session({}, graph);
  const auto second = make_session({}, graph);
  CHECK(identical(fetch(*first, "twin_1"), fetch(*first, "twin_2")));
  CHECK(identical(fetch(*first, "twin_1"), fetch(*second, "twin_1")) == false);
  CHECK_FALSE(identical(fetch(*first, "evaluate"), fetch(*second, "evaluate")));
}
