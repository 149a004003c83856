// Shapes in the bodies of recursive functions.
#pragma once

#include <vector>

#include "autodiff/call_table.h"
#include "autodiff/function_body.h"
#include "graph/graph.h"

namespace tagflow::autodiff {

// A body alone does not have the shapes of its arguments. This infers the
// shapes that hold in every call: an argument gets what the calls in `graph`
// and in the bodies have in common, the shapes that follow are inferred, those
// of calls in the bodies included, and this repeats until nothing changes.
// Calls in the graph get the shapes of their results. `table` lists the bodies
// in the same order. An error is a bug. REQUIRES: no other call is of a
// function that extends one of these.
Status infer_body_shapes(graph::Graph& graph, const CallTable& table,
                         std::vector<FunctionBody>& bodies);

}  // namespace tagflow::autodiff
