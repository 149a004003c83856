#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

TEST_CASE("smoke: a few random graphs give the reference's results") {
  for (uint64_t seed = 100'000; seed < 100'006; ++seed) {
    auto c = reference::random_graph(seed);
    REQUIRE(c.ok());
    auto expected = reference::interpret(c->graph, c->feeds, c->fetches);
    REQUIRE(expected.ok());
    if (expected->is_ambiguous) continue;
    // Every fifth: that is all of the passes, policies, workers and windows.
    for (uint64_t index = 0; index < kConfigurations; index += 5)
      compare(seed, *c, *expected, configuration(index));
  }
}
