// Mutable stacks on the way from xs to ys, made persistent ones.
//
// Note [Mutable stacks]
// Where TensorFlow has made the gradient of a loop out of primitives, the loop
// pushes values with StackPushV2, and the loop that is its gradient pops them
// with StackPopV2. No edge leads from a push to its pop, so that no rule could
// give the dual: where one pushes, its dual pops, and the other way round.
//
// So a stack that leads from an x to a y becomes a value, a PersistentStack,
// which is led through all that pushes onto it or pops from it (Thread), in the
// order in which these run: through a loop that does, as a variable of it, and
// from its Exit to the loop that is next. Then all that is known of values is
// true of it, at any order, and the value that a gradient needs is often on
// such a stack already.
//
// Which of two runs first is what the edges between them say. Where they say
// nothing, and both may run, the stack is refused.
#pragma once

#include <span>

#include "autodiff/analysis.h"

namespace tagflow::autodiff {

// Replaces the stacks from which these nodes pop. Each push and pop stays, with
// its name, as an Identity of what it gave before. The analysis is of no use
// afterwards. Unimplemented, naming nodes, where it is not seen which stack a
// handle is of, in which order it is used, or where its values are live.
Status make_stacks_persistent(Analysis& analysis,
                              std::span<const Node* const> pops);

// Whether the op pushes onto a mutable stack, or pops from one.
bool pushes_onto_stack(const Node& node);
bool pops_from_stack(const Node& node);

}  // namespace tagflow::autodiff
