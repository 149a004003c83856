// Thread: what leads an added value through the branches and around the loops
// that a graph has.
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
// All nodes that it adds are reported to the analysis, which outlives it.
// Thread-compatible.
class Thread {
 public:
  // A variable that is added to a loop.
  struct Variable {
    Node* merge = nullptr;
    // Where there is another iteration, and where there is none: outputs of a
    // Switch by the LoopCond.
    Endpoint goes_on;
    Endpoint ends;
  };

  // Names of what is added begin with `prefix`.
  Thread(Analysis& analysis, std::string prefix)
      : analysis_(analysis), prefix_(std::move(prefix)) {}

  // A node that runs in `frame`, and is live where `live` says; of a loop's
  // frame nobody asks where.
  Result<Node*> add(std::string_view name, std::string_view op,
                    std::vector<Endpoint> inputs, AttrMap attrs, FrameId frame,
                    Conditions::Set live = Conditions::kNone,
                    std::vector<Node*> controls = {});

  // The variable up to its Merge, whose back edge is open: close() it.
  Result<Node*> enter(const std::string& name, const Loop& loop,
                      const Endpoint& initial);
  // Parts `now`, which the Merge has led to, by whether the loop goes on.
  Result<Variable> part(const std::string& name, const Loop& loop, Node* merge,
                        const Endpoint& now);
  // What the variable is in the next iteration.
  Status close(const Loop& loop, const Variable& variable,
               const Endpoint& next);
  // What leaves the loop, in the frame around it.
  Result<Node*> leave(const std::string& name, const Loop& loop,
                      const Endpoint& last);

  // The value on the branches of a guard: a Switch, whose outputs are by port.
  Result<Node*> branch(const std::string& name, const Endpoint& value,
                       const Guard& guard, FrameId frame);
  // Leads a value into the branches of all guards, and what `inside` makes of
  // it out of them; where one is not taken, the value stays as it is.
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
  // The value, and what it is behind each guard.
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
