// Makes the program of a signature.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/program.h"

namespace tagflow::graph {

// Every fed tensor becomes the output of a Placeholder. It has the name of the
// fed node, unless that node is needed too: a target that is fed still runs,
// unless it is a Placeholder. InvalidArgument if a tensor is fed twice, or is a
// Const with kFixedValueAttr (graph/known_value.h). Only the needed part of
// `graph` is visited. Several threads may call it at once while the graph is
// not changed. REQUIRES: all are in `graph`, and none is inside a loop.
Result<Program> extract(const Graph& graph, std::span<const Endpoint> feeds,
                        std::span<const Endpoint> fetches,
                        std::span<Node* const> targets);

}  // namespace tagflow::graph
