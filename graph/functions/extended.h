// Calls that keep a frame of their own, and functions that give more than
// others: what graphs with gradients of recursive functions are made of.
#pragma once

#include <string>
#include <string_view>

#include "graph/function.h"
#include "graph/functions/instance.h"

namespace tagflow::graph {

// Note [Extended functions]
// A call of a recursive function runs in a frame of its own from the second
// level on. Who expands the first level in a graph for good, as gradients do,
// leaves calls in it that run as they would have: in a frame of their own,
// where random ops draw by the names of the call and of the body's nodes.
//
//   _own_frame  of a PartitionedCall: true where it is not to be expanded. It
//               becomes a `_Call` of its own name.
//   _extends    of a function f': another function f. It has the arguments of
//               f, and gives its results and then more. Its body has the nodes
//               of f's body, with their names as that of f has them.
//
// So in place of a call of f' there may be one of f wherever nobody reads what
// f' gives more, and all that is seen of the run is the same. Such calls are
// lowered as calls of f: what nobody asks for costs nothing.
inline constexpr std::string_view kOwnFrameAttr = "_own_frame";
inline constexpr std::string_view kExtendsAttr = "_extends";

bool has_own_frame(const Node& call);
// What the function extends; null where it extends none.
const FunctionRef* extended_function(const FunctionDef& function);
// Whose names the nodes of its body have: the last one that it extends.
std::string_view name_of_body(const FunctionLibrary& library,
                              const FunctionDef& function);
// The function, or what it extends and still has `results` results.
// InvalidArgument where one that is extended does not fit. One that the library
// lacks is not missed.
Result<FunctionInstance> least_extension(const FunctionLibrary& library,
                                         FunctionInstance function,
                                         size_t results, const Limits& limits);

}  // namespace tagflow::graph
