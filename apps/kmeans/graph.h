// k-means as one graph, whose loop ends when no assignment changes.
#pragma once

#include "actors/session.h"
#include "apps/kmeans/kmeans.h"
#include "graph/graph.h"

namespace tagflow::kmeans {

// The graph, and the names to feed and fetch.
struct KMeansGraph {
  graph::Graph graph;
  std::string images, start;         // to feed
  std::vector<std::string> fetches;  // trips, changed, inertia, centroids,
                                     // assignments
};

// REQUIRES: register_progress_op() was called.
Result<KMeansGraph> build_graph(int64_t max_iterations);

// One run of one graph.
Result<Solution> solve_by_graph(const Problem& problem,
                                const actors::SessionOptions& options,
                                actors::Trace* trace, actors::RunStats* stats);

}  // namespace tagflow::kmeans
