// ForwardLoop: the nodes that a loop's gradient adds to the loop.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/carrier.h"
#include "autodiff/guard.h"

namespace tagflow::autodiff {

// Note [Saved values]
// The backward loop of a loop needs values of each iteration, in the reverse
// order. A value is saved on a persistent stack, which is a variable of the
// loop. It is pushed if the loop goes on: N times in N trips, though the
// predicate is computed N + 1 times. After the loop the stack is an ordinary
// value: a loop around this one saves it in turn, so each instance of an inner
// loop has its own stack. The graph stays a plain graph, and so does its
// gradient.
//
// A value of a branch is pushed if the branch is taken; the other branch
// leaves the stack unchanged. The backward loop pops under the same predicates,
// which are saved like any value.
//
//   Enter(empty) -> Merge -> Switch -> Push(value) -> NextIteration
//                              |
//                             Exit: the stack
//
// None of this runs unless a fetch depends on it: it leads only to the added
// Exits.
class ForwardLoop {
 public:
  // The names of added nodes begin with `prefix`. `analysis` outlives this.
  ForwardLoop(Analysis& analysis, const Loop& loop, std::string prefix);

  // All results are tensors of the frame around the loop, live if the loop
  // runs.

  // The number of the iteration, from 0 on: an int64 scalar of the loop's
  // frame.
  Result<Endpoint> number();
  // A PersistentStack with `value` as it was in iterations 0, k, 2k, ...; `k`
  // is an int64 scalar of the frame around, at least 1. REQUIRES: `value` is a
  // variable of the loop, and k is the same in each call.
  Result<Endpoint> saved_every(const Endpoint& value, const Endpoint& k);
  // An int64 scalar of the frame around, as live as the loop.
  Result<Endpoint> integer(int64_t value);
  // `k`, an integer scalar of that frame, as int64, or 1 if it is less.
  Result<Endpoint> at_least_one(const Endpoint& k);
  // The number of trips: an int64 scalar. Computed from a counter of the loop,
  // if it has one.
  Result<Endpoint> trips();
  // A PersistentStack with `value` as it was in each iteration but the last in
  // which it was live. A stack that an earlier gradient has made is reused.
  // REQUIRES: a tensor of the loop's frame.
  Result<Endpoint> saved(const Endpoint& value,
                         const std::vector<Guard>& guards);
  // A list with an element for each iteration that goes on: `value`, or, if
  // that is not live, an arbitrary element. If `value` may be live in the
  // last iteration, the list has an element for that, too. REQUIRES: a tensor
  // of the loop's frame that is not a reference or handle.
  Result<Endpoint> listed(const Endpoint& value);
  // `value` in the last iteration, in which the predicate is false.
  Result<Endpoint> last(const Endpoint& value);

 private:
  // Output 0 of a new node in the loop's frame, or in the frame around the
  // loop. It is named `prefix`/`op`.
  Result<Endpoint> inside(std::string_view prefix, std::string_view op,
                          std::vector<Endpoint> inputs, AttrMap attrs = {},
                          std::vector<Node*> controls = {});
  Result<Endpoint> outside(std::string_view prefix, std::string_view op,
                           std::vector<Endpoint> inputs, AttrMap attrs = {},
                           std::vector<Node*> controls = {});
  // Output 0 of a node without inputs, in the frame around the loop.
  Result<Endpoint> source(std::string_view op, AttrMap attrs);
  // A constant of the loop.
  Result<Endpoint> filler(const std::string& name, DataType dtype);
  // The value, or the filler if not all of the guards hold.
  Result<Endpoint> value_or_filler(const Endpoint& value,
                                   const std::vector<Guard>& guards);
  Result<Carrier::Variable> add_variable(const std::string& name,
                                         const Endpoint& initial);
  Result<Endpoint> counted_trips(const Counter& counter, Node* merge);
  Result<Endpoint> stacked(const Endpoint& value,
                           const std::vector<Guard>& guards);
  Result<Endpoint> entered(const std::string& name, const Endpoint& outside);
  // The stack that has the value already; null if there is none.
  Endpoint saved_before(const Endpoint& value,
                        const std::vector<Guard>& guards);

  Analysis& analysis_;
  const Loop& loop_;
  const FrameId around_;
  Carrier carrier_;
  Endpoint trips_, number_;
  Endpoint number_ends_;  // where the loop has ended
  Endpoint is_kth_;       // whether the number is a multiple of k
  Node* anchor_ = nullptr;
  using Table = std::unordered_map<Endpoint, Endpoint, graph::EndpointHash>;
  Table saved_, saved_every_, listed_, last_;
};

}  // namespace tagflow::autodiff
