// Functions and functional control flow, rewritten to the primitives.
//
// Note [Lowering]
// A call is replaced by the body of its function, an If or Case by Switch and
// Merge around its branches, a While or For by a frame around its condition
// and body. What a body does beside its results - stateful nodes - runs
// whenever the call does, and before whatever has the call as control input;
// in a loop, before the next iteration.
//
// As any op, all of this is computed only if no input of the node is dead.
//
// A function that is called while it is being expanded is recursive: there the
// expansion stops at a node `_Call`, which runs the function in a frame of its
// own. Its body is lowered once, as a program of its own, however many nodes
// call it.
//
// A call may say that it has a frame of its own: Note [Extended functions] in
// extended.h.
#pragma once

#include <string_view>

#include "graph/limits.h"
#include "graph/program.h"

namespace tagflow::graph {

// PartitionedCall, If, While, ... and their stateless twins; SymbolicGradient.
bool is_functional_op(std::string_view op);

// Replaces every functional node of the program by primitives and `_Call`s,
// and adds the bodies that these name. Errors name the node and the function:
// NotFound for a function that is not in the library, InvalidArgument for one
// that does not fit its node, or whose body does not give what it says,
// ResourceExhausted where the result has more than the limit's nodes, or
// functions nest too deep. `nodes`, where given, gets how many nodes were made,
// with those that were one step too many.
Status lower_functions(Program& program, const Limits& limits = {},
                       size_t* nodes = nullptr);

}  // namespace tagflow::graph
