// Makes a function of a graph that was built.
#pragma once

#include <span>
#include <string>

#include "graph/function.h"
#include "graph/graph.h"

namespace tagflow::graph {

// A function whose body is `body`: `args` are outputs of Placeholders, whose
// names become the arguments' names; results are named "result_0", ... It is
// stateful if a node of the body is. InvalidArgument if an argument is not a
// Placeholder of the graph.
Result<FunctionDef> make_function(std::string name, const Graph& body,
                                  std::span<const Endpoint> args,
                                  std::span<const Endpoint> results);

}  // namespace tagflow::graph
