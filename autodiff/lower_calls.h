// Functions on the way from xs to ys, put in the place of their calls.
#pragma once

#include <span>

#include "graph/graph.h"

namespace tagflow::autodiff {

// Replaces each call, While, If, Case and For that is between xs and ys by
// primitives, as running it would (Note [Lowering] in
// graph/functions/lower.h): with the same names, so that random ops draw the
// same numbers, and each effect once. What read its outputs reads those of the
// replacement. The node itself becomes an IdentityN of them: it can be fetched,
// and handles to it stay valid.
//
// A call of a function that has a gradient function in the library stays. So
// does one of a recursive function inside of another: what it would have run in
// a frame of its own is left to do so (Note [Extended functions] in
// graph/functions/extended.h).
Status lower_calls(graph::Graph& graph, std::span<const graph::Endpoint> xs,
                   std::span<const graph::Endpoint> ys);

// What readers of a call's output read now that it was lowered; of any other
// tensor itself.
graph::Endpoint lowered_output(graph::Endpoint tensor);

// Whether the node is a call of a function that has a gradient function, and of
// which one; null where not.
const FunctionRef* function_with_gradient(const graph::Graph& graph,
                                          const graph::Node& node);

}  // namespace tagflow::autodiff
