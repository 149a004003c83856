// The functions and ops that nodes use.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/function.h"
#include "graph/node.h"

namespace tagflow::graph {

struct Program;  // graph/program.h

// The functions that nodes reach, by their ops and attributes, and recursively
// by those of the functions; sorted by name. Functions that the library lacks
// are left out.
std::vector<const FunctionDef*> reached_functions(
    const std::vector<NodeDef>& nodes, const FunctionLibrary& library);
std::vector<const FunctionDef*> reached_functions(
    std::span<Node* const> nodes, const FunctionLibrary& library);
// Those that the nodes of a lowered program and its bodies reach: kernels call
// them, as those of datasets do. The calls are lowered, and so their functions
// do not count. With the gradients of the functions, as far as `library` has
// them.
FunctionLibrary functions_of_kernels(const Program& program,
                                     const FunctionLibrary& library);
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

}  // namespace tagflow::graph
