// FunctionBody: the body of a function that runs in a frame of its own.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/functions/traits.h"
#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::autodiff {

// A body of primitives, in which calls of recursive functions keep frames of
// their own (Note [Extended functions] in graph/functions/extended.h). Nodes
// have the names that they have in the run, without the function's name as a
// prefix, so a function made from this body that extends the original runs with
// the same names.
struct FunctionBody {
  FunctionRef function;
  graph::Graph graph;
  std::vector<graph::Endpoint> args = {};  // of Placeholders
  std::vector<graph::Endpoint> results = {};
  // Nodes that run whenever the function is called.
  std::vector<graph::Node*> effects = {};
};

// The bodies of the functions that the calls name and of all that these reach,
// each once. Errors are those of lower_functions(). REQUIRES: each call has a
// frame of its own.
Result<std::vector<FunctionBody>> load_bodies(
    const graph::FunctionLibrary& library,
    std::span<const graph::Node* const> calls, const graph::Limits& limits);

// Changes the definition of a `_Call` into one that may be in any graph.
void keep_own_frame(graph::NodeDef& call, graph::LibraryTraits& traits);

}  // namespace tagflow::autodiff
