// Calls that keep a frame of their own, and functions with more results than
// others: the parts of graphs with gradients of recursive functions.
#pragma once

#include <string>
#include <string_view>

#include "graph/function.h"
#include "graph/functions/instance.h"

namespace tagflow::graph {

// Note [Extended functions]
// A call of a recursive function runs in a frame of its own from the second
// level on. If the first level is expanded permanently, as for gradients, the
// calls inside it must still run in frames of their own, since random ops
// depend on the names of the call and of the body's nodes.
//
//   _own_frame  of a PartitionedCall: true if it must not be expanded. It
//               becomes a `_Call` with its own name.
//   _extends    of a function f': another function f. It has the arguments of
//               f, and returns its results followed by others. Its body has the
//               nodes of f's body, with the same names.
//
// So a call of f' can be replaced by one of f if nobody reads the additional
// results, without a visible difference. Such calls are lowered as calls of f,
// so results that nobody reads cost nothing.
inline constexpr std::string_view kOwnFrameAttr = "_own_frame";
inline constexpr std::string_view kExtendsAttr = "_extends";

bool has_own_frame(std::string_view op, const AttrMap& attrs);
bool has_own_frame(const Node& call);
// The function that it extends; null if there is none.
const FunctionRef* extended_function(const FunctionDef& function);
// The function whose node names the body has: the last one that it extends.
std::string_view name_of_body(const FunctionLibrary& library,
                              const FunctionDef& function);
// The function, or the one that it extends, as long as that has `results`
// results. InvalidArgument if an extended function does not match. If the
// library lacks it, it is ignored.
Result<FunctionInstance> least_extension(const FunctionLibrary& library,
                                         FunctionInstance function,
                                         size_t results, const Limits& limits);

}  // namespace tagflow::graph
