// A check of the invariants of the walk (Note [The walk]), for tests.
#pragma once

#include <utility>
#include <vector>

#include "graph/graph.h"

namespace tagflow::autodiff {

// A tensor, and its gradient.
using GradientPair = std::pair<graph::Endpoint, graph::Endpoint>;

// Returns Internal if a gradient of `pairs` is not live exactly where its
// tensor is, or if an AddN, added as node `first` or later, has terms that
// are not equally live. The message names the first such node.
Status check_liveness(graph::Graph& graph, graph::NodeId first,
                      const std::vector<GradientPair>& pairs);

}  // namespace tagflow::autodiff
