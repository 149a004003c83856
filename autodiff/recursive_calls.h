// Gradients of recursive functions.
#pragma once

#include <span>

#include "autodiff/call_table.h"
#include "autodiff/paths.h"
#include "graph/limits.h"

namespace tagflow::autodiff {

// Note [Gradients of recursion]
// A recursive function f cannot be inlined into all its calls. After
// lower_calls() the remaining calls run in frames of their own. For each f with
// such a call between xs and ys two functions are added:
//
//   f'        f, with a record as one more result: Note [Records] in
//             call_region.h. It calls f' where f calls f.
//   gradient  from the record and the gradients of the results to those of the
//             arguments. Where f' calls f', it calls itself, on the record of
//             that call.
//
// The call becomes a call of f', and its rule (rules/control_flow_call.cpp)
// calls the gradient. Both are functions of primitives, and are differentiated
// as f was. f' extends f (Note [Extended functions]): a run that does not need
// the record runs f, and one that needs it draws the same random numbers and
// has the same effects.
//
// Which arguments have gradients from which results is a fixed point over all
// functions that call one another:
//   1. A result depends on an argument if a path of edges leads from one to
//      the other in the body, calls included: the least such relation.
//   2. The gradient of a result is requested if some call is on a path from
//      an x to a y through that result, in the graph, or in a body whose own
//      results and arguments are requested.

// Adds these functions for all calls between xs and ys to the library of the
// graph, and changes the calls to call them. `table`, which is that of
// `analysis`, receives what rules and Paths need. The notes of the bodies are
// added to those of `analysis`. Returns Unimplemented, naming the function,
// if a body has no gradient.
Status extend_calls(Analysis& analysis, CallTable& table, FrameId frame,
                    std::span<const Endpoint> xs, std::span<const Endpoint> ys,
                    const Paths::Set& stops, const graph::Limits& limits);

}  // namespace tagflow::autodiff
