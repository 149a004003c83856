// The engine against the reference interpreter, on random graphs: the same
// results whatever the hand-off policy, the workers, the window and the passes:
// all, none, and each alone.
#pragma once

#include <doctest/doctest.h>

#include "tests/actors/engine_check.h"

namespace tagflow::actors {

// Configurations that each graph runs in; the seed decides which, so that
// every combination is met equally often.
inline constexpr uint64_t kRunsPerGraph = 3;

inline void compare(uint64_t seed, const reference::Case& c,
                    const reference::Interpretation& expected,
                    const SessionOptions& options) {
  INFO("seed ", seed, ", ", describe(options));
  const Status status = check_engine(c, expected, options);
  INFO(status.to_string());
  CHECK(status.ok());
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
