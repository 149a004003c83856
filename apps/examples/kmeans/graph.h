// k-means as one graph with a loop that ends when no assignment changes.
//
// The points can be split over several CPU devices: each assigns its share and
// sums its clusters, and the first one computes means from the sums. With two:
//
//   images -+-> first half, on /cpu:0 ---> sums, counts -+
//           |                                            +-> centroids, /cpu:0
//           +-> second half, on /cpu:1 --> sums, counts -+       |
//                 ^                                              |
//                 +----------------- next trip ------------------+
#pragma once

#include "actors/session/session.h"
#include "apps/examples/kmeans/kmeans.h"
#include "graph/graph.h"

namespace tagflow::kmeans {

// The graph, and the names to feed and fetch.
struct KMeansGraph {
  graph::Graph graph;
  std::vector<std::string> feeds;    // images, start, max_iterations (int64)
  std::vector<std::string> fetches;  // trips, changed, inertia, centroids,
                                     // assignments
};

// With `shards` > 1, there is one for each of /cpu:0, /cpu:1, .... Their sizes
// differ by at most one point, and the results differ from those of one shard
// only by the rounding of sums. REQUIRES: shards >= 1; register_progress_op()
// was called.
Result<KMeansGraph> build_graph(int shards);

// One run of one graph. REQUIRES: `options` has as many CPU devices.
Result<Solution> solve_by_graph(const Problem& problem, int shards,
                                const actors::SessionOptions& options,
                                actors::Trace* trace, actors::RunStats* stats);

}  // namespace tagflow::kmeans
