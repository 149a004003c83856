// Replaces mutable stacks between xs and ys by persistent ones.
//
// Note [Mutable stacks]
// If TensorFlow has made the gradient of a loop from primitives, the loop
// pushes values with StackPushV2, and its gradient loop pops them with
// StackPopV2. No edge leads from a push to its pop, so no rule could give the
// dual, in which a push becomes a pop and a pop becomes a push.
//
// So a stack that leads from an x to a y becomes a value, a PersistentStack. It
// is carried (Carrier) through all nodes that push onto it or pop from it, in
// the order in which these run: through a loop as a variable of the loop, and
// from its Exit to the next loop. Then it is differentiated like any value, to
// any order, and the value that a gradient needs is often on such a stack
// already.
//
// The edges between two users decide which one runs first. If no edge orders
// them, and both may run, the stack is rejected.
#pragma once

#include <span>

#include "autodiff/analysis.h"

namespace tagflow::autodiff {

// Replaces the stacks from which these nodes pop. Each push and pop keeps its
// name, and becomes an Identity of its former output. Invalidates the analysis.
// Returns Unimplemented, naming nodes, if it cannot be determined which
// stack a handle is of, in which order it is used, or where its values are
// live.
Status make_stacks_persistent(Analysis& analysis,
                              std::span<const Node* const> pops);

// Whether the op pushes onto a mutable stack, or pops from one.
bool pushes_onto_stack(const Node& node);
bool pops_from_stack(const Node& node);

}  // namespace tagflow::autodiff
