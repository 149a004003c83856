// A check of what the walk promises (Note [The walk]), for tests.
#pragma once

#include <utility>
#include <vector>

#include "graph/graph.h"

namespace tagflow::autodiff {

// A tensor, and its gradient.
using GradientPair = std::pair<graph::Endpoint, graph::Endpoint>;

// Internal where a gradient of `pairs` is not live exactly where its tensor is,
// or where an AddN that was added from node `first` on has parts that are not
// equally live: the first such node is named.
Status check_liveness(graph::Graph& graph, graph::NodeId first,
                      const std::vector<GradientPair>& pairs);

}  // namespace tagflow::autodiff
