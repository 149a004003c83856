// Carrier: carries an added value through the branches and loops of a graph.
#pragma once

#include <string>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/guard.h"

namespace tagflow::autodiff {

//   Enter(initial) -> Merge -> Switch -> ... -> NextIteration
//                                |
//                               Exit
//
// It reports all nodes that it adds to the analysis, which outlives it.
// Thread-compatible.
class Carrier {
 public:
  // A variable that is added to a loop, behind its Switch.
  struct Variable {
    Node* merge = nullptr;
    // Its value where the loop goes on, and where it ends: outputs of a Switch
    // by the LoopCond.
    Endpoint goes_on;
    Endpoint ends;
  };

  // The names of added nodes begin with `prefix`.
  Carrier(Analysis& analysis, std::string prefix)
      : analysis_(analysis), prefix_(std::move(prefix)) {}

  // Adds a node that runs in `frame` and is live under `live`.
  Result<Node*> add(std::string_view name, std::string_view op,
                    std::vector<Endpoint> inputs, AttrMap attrs, FrameId frame,
                    Conditions::Set live = Conditions::kNone,
                    std::vector<Node*> controls = {});

  // Adds a variable up to its Merge, whose back edge is open until close().
  Result<Node*> enter(const std::string& name, const Loop& loop,
                      const Endpoint& initial);
  // Switches `now`, computed from the Merge, by whether the loop goes on.
  Result<Variable> split(const std::string& name, const Loop& loop, Node* merge,
                         const Endpoint& now);
  // Sets the variable's value in the next iteration.
  Status close(const Loop& loop, const Variable& variable,
               const Endpoint& next);
  // Adds an Exit of `last` to the frame around the loop.
  Result<Node*> leave(const std::string& name, const Loop& loop,
                      const Endpoint& last);

  // Adds a Switch of the value by a guard.
  Result<Node*> branch(const std::string& name, const Endpoint& value,
                       const Guard& guard, FrameId frame);
  // Carries a value into the branches of all guards, and the result of `inside`
  // out of them. If a branch is not taken, the value is unchanged.
  template <class Inside>
  Result<Endpoint> guarded(const std::string& name, const Endpoint& value,
                           const std::vector<Guard>& guards, FrameId frame,
                           Inside inside) {
    TAGFLOW_ASSIGN(const std::vector<Endpoint> branches,
                   into(name, value, guards, frame));
    TAGFLOW_ASSIGN(const Endpoint made, inside(branches.back()));
    return out_of(name, branches, made, guards, frame);
  }

 private:
  // The value, and the value behind each guard.
  Result<std::vector<Endpoint>> into(const std::string& name,
                                     const Endpoint& value,
                                     const std::vector<Guard>& guards,
                                     FrameId frame);
  Result<Endpoint> out_of(const std::string& name,
                          const std::vector<Endpoint>& branches, Endpoint made,
                          const std::vector<Guard>& guards, FrameId frame);

  Analysis& analysis_;
  const std::string prefix_;
};

}  // namespace tagflow::autodiff
