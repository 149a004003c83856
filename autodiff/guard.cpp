#include "autodiff/guard.h"

namespace tagflow::autodiff {

graph::OpResult switch_by(const graph::Scope& s, const graph::Output& value,
                          const graph::Output& predicate, int ports) {
  if (ports == 2) return s.op("Switch", {value, predicate});
  return s.op("_SwitchN", {value, predicate}, {{"num_outs", ports}});
}

// A predicate's condition gets its number after all those under which the
// predicate is live, so ascending numbers are the required order.
Result<std::vector<Guard>> guards_of(Analysis& analysis, FrameId frame,
                                     Conditions::Set set, Conditions::Set given,
                                     const Endpoint& what) {
  std::vector<Guard> guards;
  if (set == given) return guards;
  Conditions& conditions = analysis.conditions();
  const Conditions::Set rest = conditions.without(set, given);
  for (const Conditions::Id id : conditions.of(rest)) {
    const graph::Condition& condition = conditions.condition(id);
    const Endpoint predicate = condition.ports == 0
                                   ? Endpoint()
                                   : analysis.predicate_in(frame, condition);
    if (predicate.node == nullptr)
      return error(Code::kUnimplemented,
                   "[gradients] \"{}\" may be dead, which depends on \"{}\" in "
                   "a way that is not known when the graph is built",
                   what.to_string(), condition.source.to_string());
    guards.push_back({predicate, condition.port, condition.ports});
  }
  return guards;
}

bool are_exclusive(const Conditions& conditions, Conditions::Set a,
                   Conditions::Set b) {
  for (const Conditions::Id one : conditions.of(a))
    for (const Conditions::Id other : conditions.of(b)) {
      const graph::Condition& x = conditions.condition(one);
      const graph::Condition& y = conditions.condition(other);
      if (x.source == y.source && x.ports != 0 && x.ports == y.ports &&
          x.port != y.port)
        return true;
    }
  return false;
}

}  // namespace tagflow::autodiff
