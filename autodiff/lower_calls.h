// Inlines the functions that are called between xs and ys.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::autodiff {

// Replaces each call, While, If, Case and For that is between xs and ys by
// primitives, as running it would (Note [Lowering] in graph/functions/lower.h):
// with the same names, so that random ops draw the same numbers, and each
// effect once. Readers of its outputs then read those of the replacement. The
// node itself becomes an IdentityN of them, so it can be fetched, and handles
// to it stay valid.
//
// A call of a function that has a gradient function in the library stays, also
// one in another function, a branch or a loop. So does a call of a recursive
// function inside another one: it still runs in a frame of its own (Note
// [Extended functions] in graph/functions/extended.h). The limit of nodes is
// that of the whole graph.
Status lower_calls(graph::Graph& graph, std::span<const graph::Endpoint> xs,
                   std::span<const graph::Endpoint> ys,
                   const graph::Limits& limits);

// The tensor that replaced the output of a lowered call; any other tensor
// itself.
graph::Endpoint lowered_output(graph::Endpoint tensor);

}  // namespace tagflow::autodiff
