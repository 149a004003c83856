// Rewrites functions and functional control flow to the primitives.
//
// Note [Lowering]
// A call is replaced by the body of its function, an If or Case by Switch and
// Merge around its branches, a While or For by a frame around its condition and
// body. Stateful nodes of a body run whenever the call does, and before all
// nodes with the call as control input; in a loop, before the next iteration.
//
// As for any op, nothing of this is computed if an input of the node is dead.
//
// A function that is called while it is being expanded is recursive: there the
// expansion stops at a node `_Call`, which runs the function in a frame of its
// own. Its body is lowered once, as a separate program, for all nodes that call
// it.
//
// A call can request a frame of its own: Note [Extended functions] in
// extended.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/limits.h"
#include "graph/program.h"

namespace tagflow::graph {

// PartitionedCall, If, While, ... and their stateless variants;
// SymbolicGradient.
bool is_functional_op(std::string_view op);

// Whether the node calls a function with a gradient function in the library, by
// a PartitionedCall or by the function's name as op.
bool calls_with_gradient(const FunctionLibrary& library, const Node& node);

// What becomes of the calls of functions that have a gradient function in the
// library: all calls are replaced for a run, but one that is differentiated
// must stay what it is, wherever it is.
enum class OwnGradients : uint8_t { kReplaced, kKept };

// Replaces every functional node of the program by primitives and `_Call`s, and
// adds the bodies that these use. Errors name the node and the function:
// NotFound for a function that is not in the library, InvalidArgument if it
// does not match its node, or its body does not match its signature,
// ResourceExhausted if the result has too many nodes, or functions are nested
// too deeply; errors of the budget. Too many nodes are found before the first
// of them is made, unless only the nodes around the bodies, or those of
// functions that are passed as attributes, exceed the limit. `nodes`, if given,
// receives the number of nodes made, including those that exceeded the limit.
Status lower_functions(Program& program, const Limits& limits = {},
                       size_t* nodes = nullptr,
                       OwnGradients own_gradients = OwnGradients::kReplaced);

}  // namespace tagflow::graph
