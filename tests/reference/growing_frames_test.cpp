// Graphs that grow by random pieces, compared with the same graphs as a whole.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/analysis/prune.h"
#include "graph/analysis/validate.h"
#include "graph/function.h"
#include "tests/reference/random_graph.h"

namespace tagflow::reference {
namespace {

using graph::FrameMap;
using graph::Graph;
using graph::Node;
using graph::NodeDef;

// The definitions of nodes that some node needs, those in `has` apart, in any
// order.
std::vector<NodeDef> draw_piece(const Graph& whole, const Graph& has,
                                Choices& choices) {
  Node* last = whole.nodes()[choices.below(uint32_t(whole.size()))];
  std::vector<NodeDef> piece;
  for (const Node* node : graph::needed_nodes(whole, {}, {&last, 1}, {}))
    if (has.find(node->name()) == nullptr)
      piece.push_back(Graph::to_def(*node));
  for (size_t i = piece.size(); i > 1; --i)
    std::swap(piece[i - 1], piece[choices.below(uint32_t(i))]);
  return piece;
}

void check_same(const Graph& graph, const FrameMap& grown,
                const FrameMap& fresh) {
  CHECK(grown.num_nodes() == graph.size());
  REQUIRE(grown.frames().size() == fresh.frames().size());
  for (size_t i = 0; i < grown.frames().size(); ++i) {
    const graph::StaticFrame& a = grown.frames()[i];
    const graph::StaticFrame& b = fresh.frames()[i];
    CHECK(a.id == b.id);
    CHECK(a.name == b.name);
    CHECK(a.parent == b.parent);
    CHECK(a.depth == b.depth);
    CHECK(a.parallel_iterations == b.parallel_iterations);
    CHECK(a.enters == b.enters);
    CHECK(a.exits == b.exits);
    CHECK(a.next_iterations == b.next_iterations);
    CHECK(a.loop_conds == b.loop_conds);
    CHECK(a.merges == b.merges);
  }
  bool same = true;
  for (const Node* node : graph.nodes())
    same = same && grown.of(*node) == fresh.of(*node) &&
           grown.output_of(*node) == fresh.output_of(*node);
  CHECK(same);
  CHECK(grown.warnings() == fresh.warnings());
}

}  // namespace

TEST_CASE("frames found piece by piece are those of the whole") {
  size_t pieces = 0;
  size_t into_old_frames = 0;  // pieces that enter a loop that is there
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Result<Case> made = random_graph(seed);
    REQUIRE(made.ok());
    SeededChoices choices(seed + 1);
    Graph grown;
    REQUIRE(grown.library().merge(made->graph.library()).ok());
    graph::GrowingCheck check;
    while (grown.size() < made->graph.size()) {
      const size_t first = grown.size();
      const size_t frames = check.frames().frames().size();
      const Status added =
          grown.extend(draw_piece(made->graph, grown, choices));
      REQUIRE_MESSAGE(added.ok(), added.to_string());
      if (grown.size() == first) continue;
      const Status valid = check.run(grown);
      REQUIRE_MESSAGE(valid.ok(), valid.to_string());
      const Result<FrameMap> fresh = graph::validated_frames(grown);
      REQUIRE(fresh.ok());
      check_same(grown, check.frames(), *fresh);
      ++pieces;
      into_old_frames += std::ranges::any_of(
          grown.nodes().subspan(first), [&](const Node* node) {
            return node->is_enter() &&
                   size_t(check.frames().output_of(*node)) < frames;
          });
    }
    CHECK(check.num_visits() ==
          grown.size() + grown.library().functions().size());
  }
  CHECK(pieces > 1500);
  CHECK(into_old_frames > 50);
}

}  // namespace tagflow::reference
