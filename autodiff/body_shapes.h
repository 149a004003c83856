// Shapes in the bodies of recursive functions.
#pragma once

#include <vector>

#include "autodiff/call_table.h"
#include "autodiff/function_body.h"

namespace tagflow::autodiff {

// A body on its own says nothing of the shapes of its arguments, and so a
// gradient could count on none. This finds those that they have in every call:
// it takes an argument for what the calls in `graph` and in the bodies have in
// common, infers what follows, calls of the bodies included, and so on until
// nothing changes. Calls in the graph get the shapes of their results.
// `table` is of the bodies, by number. An error is a bug.
// REQUIRES: nobody else calls a function that extends one of these.
Status infer_body_shapes(graph::Graph& graph, const CallTable& table,
                         std::vector<FunctionBody>& bodies);

}  // namespace tagflow::autodiff
