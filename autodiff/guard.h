// Guards: what decides, within one loop or outside of all, whether a value is
// live.
#pragma once

#include <vector>

#include "autodiff/analysis.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

// The value is live only where `predicate` takes `port` of `ports`.
struct Guard {
  Endpoint predicate;  // in the frame of the value
  int port = 0;
  int ports = 2;
};

// The value, at the port that the predicate takes out of `ports`.
graph::OpResult switch_by(const graph::Scope& s, const graph::Output& value,
                          const graph::Output& predicate, int ports);

// The guards of what is live under the conditions `set`, in an order in which
// each predicate is live where those before it hold. Those in `given` are known
// to hold. Unimplemented where a condition is more than what a predicate says,
// as of a Merge of which not all inputs are known to be alternatives; `what` is
// for the message.
Result<std::vector<Guard>> guards_of(Analysis& analysis, FrameId frame,
                                     Conditions::Set set, Conditions::Set given,
                                     const Endpoint& what);

// Whether never both hold: some predicate would have to take two ports.
bool are_exclusive(const Conditions& conditions, Conditions::Set a,
                   Conditions::Set b);

}  // namespace tagflow::autodiff
