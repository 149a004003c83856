// ForwardLoop: what is added to a loop of the graph for the sake of its
// gradient.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/guard.h"
#include "autodiff/thread.h"

namespace tagflow::autodiff {

// Note [Saved values]
// The backward loop of a loop needs values of each iteration, in the reverse
// order. A value is saved on a persistent stack, which is a variable of the
// loop: pushed where the loop goes on, so N times in N trips, though the
// predicate is computed N + 1 times. What the stack is after the loop is an
// ordinary value: in a loop around this one it is saved in turn, and each
// instance of an inner loop has a stack of its own. The graph stays a plain
// one, and so does its gradient.
//
// A value of a branch is pushed where its branch is taken; on the other one the
// stack stays as it is. The backward loop pops under the same predicates, which
// are saved like any value.
//
//   Enter(empty) -> Merge -> Switch -> Push(value) -> NextIteration
//                              |
//                             Exit: the stack
//
// None of this runs where nobody fetches what depends on it: it leads to the
// added Exits alone.
class ForwardLoop {
 public:
  // Names of what is added begin with `prefix`. `analysis` outlives this.
  ForwardLoop(Analysis& analysis, const Loop& loop, std::string prefix);

  // All results are tensors of the frame around the loop, live where the loop
  // runs.

  // How many trips it made: an int64 scalar. By a counter that the loop has, if
  // it has one.
  Result<Endpoint> trips();
  // A PersistentStack with `value` as it was in each iteration in which it was
  // live and which was not the last. One that was saved for an earlier gradient
  // is not saved again. REQUIRES: a tensor of the loop's frame.
  Result<Endpoint> saved(const Endpoint& value,
                         const std::vector<Guard>& guards);
  // `value` in the last iteration, which only finds out that the loop ends.
  Result<Endpoint> last(const Endpoint& value);

 private:
  // A node in the frame around the loop.
  Result<Node*> add(std::string_view name, std::string_view op,
                    std::vector<Endpoint> inputs, AttrMap attrs,
                    std::vector<Node*> controls = {});
  // A node without inputs, in the frame around the loop.
  Result<Endpoint> source(std::string_view op, AttrMap attrs);
  Result<Thread::Variable> add_variable(const std::string& name,
                                        const Endpoint& initial);
  Result<Endpoint> counted_trips(const Counter& counter, Node* merge);
  // The stack that has the value already; null where there is none.
  Endpoint saved_before(const Endpoint& value,
                        const std::vector<Guard>& guards);

  Analysis& analysis_;
  const Loop& loop_;
  const FrameId around_;
  Thread thread_;
  Endpoint trips_;
  Node* anchor_ = nullptr;
  using Table = std::unordered_map<Endpoint, Endpoint, graph::EndpointHash>;
  Table saved_, last_;
  std::unordered_map<int, Endpoint> empty_;  // stacks, by type
};

}  // namespace tagflow::autodiff
