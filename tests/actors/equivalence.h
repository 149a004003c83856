// Compares the engine with the reference interpreter on random graphs: the
// results are the same for all hand-off policies, workers, windows and passes
// (all, none, and each alone).
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

// Which devices a graph runs on beside those of its configurations: each of the
// specs, with its nodes scattered by as many seeds.
struct Scattering {
  std::vector<std::string> devices;
  uint64_t seeds = 1;
};

inline void compare_range(uint64_t first, uint64_t count,
                          const Scattering& scattering = {}) {
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
    for (const std::string& devices : scattering.devices)
      for (uint64_t scatter = 0; scatter < scattering.seeds; ++scatter) {
        SessionOptions options = configuration(seed * 7 + scatter * 17);
        options.devices = devices;
        options.scatter = scatter;
        compare(seed, *c, *expected, options);
      }
  }
}

}  // namespace tagflow::actors
