// Transfers between devices may arrive in any order: random graphs with loops
// in loops over two to five devices, with tokens that the rendezvous delays at
// random, always end, and agree with the reference interpreter.
#include <algorithm>

#include "graph/analysis/frames.h"
#include "tests/actors/equivalence.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

bool has_nested_loop(const graph::Graph& graph) {
  const auto frames = graph::FrameMap::build(graph);
  REQUIRE(frames.ok());
  return std::ranges::any_of(
      frames->frames(),
      [](const graph::StaticFrame& frame) { return frame.depth > 1; });
}

}  // namespace

TEST_CASE("1,000 nested loops over devices end, whatever is delayed") {
  constexpr int kGraphs = 1000;
  int run = 0;
  for (uint64_t seed = 500'000; run < kGraphs; ++seed) {
    const auto c = reference::random_graph(seed);
    REQUIRE(c.ok());
    if (!has_nested_loop(c->graph)) continue;
    const auto expected = reference::interpret(c->graph, c->feeds, c->fetches);
    REQUIRE(expected.ok());
    if (expected->is_ambiguous) continue;
    SessionOptions options = configuration(seed);
    options.hand_off = HandOff::kRandom;
    options.devices = fmt::format("cpu:{}", 2 + run % 4);
    compare(seed, *c, *expected, options);
    ++run;
  }
}
