// The shapes that the variables of loops keep.
#pragma once

#include "graph/graph.h"

namespace tagflow::graph {

// When a Merge is added, its back edge is open, and so nothing is known of its
// shape. This finds the shapes that variables have in every iteration, and what
// follows from these: it takes each variable for what enters the loop, infers
// what comes around, takes it for what both have in common, and so on until
// nothing changes. Shapes only become more exact. An error is a bug.
// REQUIRES: the graph is valid
Status infer_loop_shapes(Graph& graph);

}  // namespace tagflow::graph
