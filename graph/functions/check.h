// Finds errors in ops and functions without a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace tagflow::graph {

// The functions that nodes reach, by their ops and attributes, and recursively
// by those of the functions; sorted by name. Functions that the library lacks
// are left out.
std::vector<const FunctionDef*> reached_functions(
    const std::vector<NodeDef>& nodes, const FunctionLibrary& library);
std::vector<const FunctionDef*> reached_functions(
    std::span<Node* const> nodes, const FunctionLibrary& library);
// The functions that one node names, whether they exist or not.
std::vector<std::string> named_functions(std::string_view op,
                                         const AttrMap& attrs,
                                         const FunctionLibrary& library);

// The prefix of messages of check_ops().
inline constexpr std::string_view kOpsModule = "[ops] ";
// Unimplemented if nodes, or those of the functions, have ops that are neither
// registered nor in the library. The message names each such op and the place
// of its first node.
Status check_ops(const std::vector<NodeDef>& nodes,
                 const std::vector<const FunctionDef*>& functions,
                 const FunctionLibrary& library);

// Lowers a node that calls functions, in a separate graph: the error is that of
// a run that needs the node. Of the graph only the shapes and constants that
// the node reads matter. OK if it calls no function. REQUIRES: all its inputs
// exist.
//
// Nested functions can expand to very many nodes: `budget` is the maximum, from
// which the number of new nodes is subtracted. ResourceExhausted beyond it;
// then the budget is 0.
Status check_call(const Graph& graph, const Node& node, size_t& budget);
// The same for a call of the function. OK if it needs attributes of its caller,
// which determine its meaning.
Status check_function(const FunctionDef& function,
                      const FunctionLibrary& library, size_t& budget);

}  // namespace tagflow::graph
