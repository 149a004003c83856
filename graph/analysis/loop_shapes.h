// The shapes that the variables of loops keep, and those of lists' elements.
#pragma once

#include <span>

#include "graph/graph.h"

namespace tagflow::graph {

// When a Merge is added, its back edge is open, and so nothing is known of its
// shape. This finds the shapes that variables have in every iteration, and what
// follows from these: it takes each variable for what enters the loop, infers
// what comes around, takes it for what both have in common, and so on until
// nothing changes. In the same rounds what is read of a list gets the shape
// that all its elements have, wherever they were put in. Also infers what
// follows from `changed`: nodes whose output shapes were set to better ones
// since. Shapes only become more exact. An error is a bug.
// REQUIRES: the graph is valid
Status infer_loop_shapes(Graph& graph, std::span<Node* const> changed = {});

}  // namespace tagflow::graph
