// Makes a recursive function that records what its gradient needs, and the
// gradient.
#pragma once

#include "autodiff/call_table.h"
#include "autodiff/function_body.h"
#include "autodiff/paths.h"

namespace tagflow::autodiff {

// Adds f' and the gradient of f to the library, under the names in `called`
// (Note [Gradients of recursion] in recursive_calls.h). `analysis` is that of
// the body, in which calls on the `paths` from the arguments to the results are
// already of f'; the nodes with which f' saves values are added to the body.
// Returns Unimplemented if the body has no gradient, or a result may be
// dead. After an error the library is unusable.
Status add_recorded_function(graph::FunctionLibrary& library,
                             const FunctionBody& body, Analysis& analysis,
                             const Paths& paths, const CalledFunction& called);

}  // namespace tagflow::autodiff
