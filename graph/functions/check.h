// Finds errors in functions without a run.
#pragma once

#include <cstddef>

#include "graph/function.h"
#include "graph/graph.h"

namespace tagflow::graph {

// Lowers a node that calls functions, in a separate graph: the error is that of
// a run that needs the node. Of the graph only the shapes and constants that
// the node reads matter. OK if it calls no function. REQUIRES: all its inputs
// exist.
//
// Nested functions can expand to very many nodes: `budget` is the maximum, from
// which the number of new nodes is subtracted. ResourceExhausted beyond it;
// then the budget is 0.
Status check_call(const Graph& graph, const Node& node, size_t& budget);
// As check_call(), for a call of the function. OK if it needs attributes of its
// caller, which determine its meaning.
Status check_function(const FunctionDef& function,
                      const FunctionLibrary& library, size_t& budget);

}  // namespace tagflow::graph
