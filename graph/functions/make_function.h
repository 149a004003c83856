// A function of a graph that was built.
#pragma once

#include <span>
#include <string>

#include "graph/function.h"

namespace tagflow::graph {

// A function whose body is `body`: `args` are outputs of Placeholders, which
// give the arguments their names; results are named "result_0", ... It is
// stateful where a node of the body is. InvalidArgument where an argument is
// no Placeholder of the graph.
Result<FunctionDef> make_function(std::string name, const Graph& body,
                                  std::span<const Endpoint> args,
                                  std::span<const Endpoint> results);

}  // namespace tagflow::graph
