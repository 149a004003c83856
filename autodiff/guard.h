// Guards: the predicates that decide, within one frame, whether a value is
// live.
#pragma once

#include <vector>

#include "autodiff/analysis.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// The value is live only if `predicate` takes `port` of `ports`.
struct Guard {
  Endpoint predicate;  // in the frame of the value
  int port = 0;
  int ports = 2;
};

// Switches the value to the one of `ports` outputs that the predicate takes.
graph::OpResult switch_by(const graph::Scope& s, const graph::Output& value,
                          const graph::Output& predicate, int ports);

// The guards of a value that is live under the conditions `set`, ordered so
// that each predicate is live if those before it hold. The conditions in
// `given` are known to hold. Returns Unimplemented if a condition is not
// that of a predicate, as that of a Merge whose inputs are not all known to be
// alternatives; `what` is for the message.
Result<std::vector<Guard>> guards_of(Analysis& analysis, FrameId frame,
                                     Conditions::Set set, Conditions::Set given,
                                     const Endpoint& what);

// Whether both can never hold, since a predicate would have to take two ports.
bool are_exclusive(const Conditions& conditions, Conditions::Set a,
                   Conditions::Set b);

}  // namespace tagflow::autodiff
