// CallRegion: gradients of what a call of a recursive function has computed.
#pragma once

#include <deque>
#include <vector>

#include "autodiff/region.h"
#include "autodiff/thread.h"

namespace tagflow::autodiff {

// Note [Records]
// A call of f' gives a record of what its gradient needs: an optional, which
// holds the values by their number. Among these are the records of the calls
// that it has made itself, so that a record has the shape of the recursion, and
// calls that do not wait for one another have gradients that do not either.
//
// A value of a branch is in an optional of its own, together with all others
// that are live under the same conditions. Where the branch is not taken, there
// is an optional of nothing in its place.
//
//   record   (x, y, branch)           in f'
//   branch   Merge((a, b), none)
//
// Values of loops are on stacks, as everywhere: what is recorded is the stack.
// All of it has gradients (Note [Gradients of containers]), so that f' and its
// gradient are differentiated as any function is.
class CallRegion final : public DistantRegion {
 public:
  // The body of the function, and the root scope of the graph in which its
  // gradient is made.
  CallRegion(Analysis& analysis, graph::Scope scope)
      : DistantRegion(analysis, FrameId::kRoot, std::move(scope)),
        thread_(analysis, "record") {}

  // Takes all values that were asked for out of `record`, a tensor of the
  // gradient's graph, and returns the record as the body gives it. To be called
  // once, at the end.
  Result<Endpoint> finish(const Output& record);

 protected:
  // What stands for the value until finish().
  Output varying_value(const Endpoint& tensor) override;

 private:
  // Values that are live under the same conditions.
  struct Group {
    Conditions::Set live;
    std::vector<Guard> guards;
    std::vector<Endpoint> values = {};
    std::vector<Node*> stand_ins = {};  // in the gradient's graph
  };

  Result<Group*> group_of(const Endpoint& tensor);
  Result<Endpoint> pack(const std::vector<Endpoint>& values);
  Result<Endpoint> pack_guarded(const Group& group);
  // The values of an optional.
  graph::OpResult unpack(const Output& optional,
                         const std::vector<Endpoint>& values) const;
  Status take_out(const Group& group, const graph::OpResult& values) const;

  Thread thread_;
  std::deque<Group> groups_;
};

}  // namespace tagflow::autodiff
