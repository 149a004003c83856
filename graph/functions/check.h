// What a run would refuse about ops and functions, found without a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/graph.h"

namespace tagflow::graph {

// The functions that nodes lead to, by their ops and attributes and in turn by
// those of the functions; sorted by name. What the library lacks is left out.
std::vector<const FunctionDef*> reached_functions(
    const std::vector<NodeDef>& nodes, const FunctionLibrary& library);
std::vector<const FunctionDef*> reached_functions(
    std::span<Node* const> nodes, const FunctionLibrary& library);
// The functions that one node names, there or not.
std::vector<std::string> named_functions(std::string_view op,
                                         const AttrMap& attrs,
                                         const FunctionLibrary& library);

// What the message of check_ops() begins with.
inline constexpr std::string_view kOpsModule = "[ops] ";
// Unimplemented where nodes, or those of the functions, have ops that are
// neither registered nor in the library: names each such op, and where the
// first of its nodes is.
Status check_ops(const std::vector<NodeDef>& nodes,
                 const std::vector<const FunctionDef*>& functions,
                 const FunctionLibrary& library);

// Lowers a node that calls functions, in a graph of its own: the error is that
// of a run that needs the node, of which nothing but the shapes and constants
// it reads matters. OK for a node that calls none. REQUIRES: all its inputs
// are there.
//
// Functions that call functions can stand for very many nodes: `budget` says
// how many may be made, and what was made is taken off. What needs more is
// ResourceExhausted, and leaves none.
Status check_call(const Graph& graph, const Node& node, size_t& budget);
// The same for a call of the function. OK where it needs attributes of its
// caller, which decide what it means.
Status check_function(const FunctionDef& function,
                      const FunctionLibrary& library, size_t& budget);

}  // namespace tagflow::graph
