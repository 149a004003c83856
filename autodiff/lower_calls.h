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
// A call of a function that has a gradient function in the library stays.
// Unimplemented where a function is recursive.
Status lower_calls(graph::Graph& graph, std::span<const graph::Endpoint> xs,
                   std::span<const graph::Endpoint> ys);

// Whether the node is a call of a function that has a gradient function, and of
// which one; null where not.
const FunctionRef* function_with_gradient(const graph::Graph& graph,
                                          const graph::Node& node);

}  // namespace tagflow::autodiff
