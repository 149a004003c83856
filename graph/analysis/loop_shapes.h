// Infers shapes of loop variables and of elements of lists.
#pragma once

#include <span>

#include "graph/graph.h"

namespace tagflow::graph {

class Budget;  // graph/budget.h

// When a Merge is added, its back edge is open, so its shape is unknown. This
// finds the shapes that variables have in every iteration, and infers the
// shapes that depend on them. It starts with the shape that enters the loop,
// infers that of the back edge, relaxes the variable's shape to both, and
// repeats this until nothing changes. In the same rounds reads of lists get the
// common shape of all elements. It also infers the shapes that depend on
// `changed`: nodes whose output shapes were refined. Shapes only become more
// exact. An error is a bug, or one of the budget. REQUIRES: the graph is valid.
Status infer_loop_shapes(Graph& graph, std::span<Node* const> changed = {},
                         Budget* budget = nullptr);

}  // namespace tagflow::graph
