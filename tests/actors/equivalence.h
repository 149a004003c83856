// The engine against the reference interpreter, on random graphs: the same
// results whatever the hand-off policy, the workers, the window and the passes:
// all, none, and each alone.
#pragma once

#include <doctest/doctest.h>

#include "tests/actors/sessions.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/random_graph.h"

namespace tagflow::actors {

// How many configurations there are.
inline constexpr uint64_t kPassSets = graph::kNumPasses + 2;
inline constexpr uint64_t kConfigurations = 24 * kPassSets;

// Configurations that each graph runs in; the seed decides which, so that
// every combination is met equally often.
inline constexpr uint64_t kRunsPerGraph = 3;

inline SessionOptions configuration(uint64_t index) {
  static constexpr int kWindows[] = {1, 2, 8, 32};
  SessionOptions options;
  options.hand_off = kHandOffs[index % 3];
  options.workers = 1 + int(index / 3 % 2);
  options.window = kWindows[index / 6 % 4];
  const uint64_t passes = index / 24 % kPassSets;
  if (passes < graph::kNumPasses) {
    options.passes = graph::PassSet::only(graph::Pass(passes));
  } else if (passes == graph::kNumPasses) {
    options.passes = graph::PassSet::none();
  }
  options.seed = index;
  options.timeout = std::chrono::seconds(60);
  return options;
}

inline void compare(uint64_t seed, const reference::Case& c,
                    const reference::Interpretation& expected,
                    const SessionOptions& options) {
  INFO("seed ", seed, ", ", describe(options));
  const auto session = make_session(options, c.graph);
  std::vector<std::string> live;
  std::vector<Tensor> values;
  for (size_t i = 0; i < c.fetches.size(); ++i) {
    const reference::Outcome& outcome = expected.fetches[i];
    if (outcome.state == reference::State::kLive) {
      live.push_back(c.fetches[i]);
      values.push_back(outcome.value);
      continue;
    }
    auto result = session->run(c.feeds, {c.fetches[i]});
    INFO("fetch ", c.fetches[i]);
    REQUIRE(!result.ok());
    const bool is_dead = outcome.state == reference::State::kDead;
    INFO(result.status().to_string());
    CHECK(result.status().code() ==
          (is_dead ? Code::kInvalidArgument : Code::kDeadlock));
  }
  auto result = session->run(c.feeds, live);
  INFO(result.status().to_string());
  REQUIRE(result.ok());
  for (size_t i = 0; i < live.size(); ++i) {
    INFO(live[i], " is ", (*result)[i].to_string(), ", expected ",
         values[i].to_string());
    CHECK(identical((*result)[i], values[i]));
  }
}

inline void compare_range(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    auto c = reference::random_graph(seed);
    INFO("seed ", seed, ": ", c.status().to_string());
    REQUIRE(c.ok());
    auto expected = reference::interpret(c->graph, c->feeds, c->fetches);
    INFO(expected.status().to_string());
    REQUIRE(expected.ok());
    if (expected->is_ambiguous) continue;
    for (uint64_t run = 0; run < kRunsPerGraph; ++run)
      compare(seed, *c, *expected, configuration(seed * 7 + run * 17));
  }
}

}  // namespace tagflow::actors
