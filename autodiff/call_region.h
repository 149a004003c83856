// CallRegion: the gradients of the values in a call of a recursive function.
#pragma once

#include <deque>
#include <vector>

#include "autodiff/carrier.h"
#include "autodiff/region.h"

namespace tagflow::autodiff {

// Note [Records]
// A call of f' returns a record of what its gradient needs: an optional that
// holds the values by their number. Among them are the records of the calls
// that it has made itself, so a record is a tree like the recursion, and the
// gradients of independent calls are independent, too.
//
// A value of a branch is in a separate optional, together with all others that
// are live under the same conditions. If the branch is not taken, that
// optional is empty.
//
//   record   (x, y, branch)           in f'
//   branch   Merge((a, b), none)
//
// Values of loops are on stacks, as everywhere, and the record has the stack.
// Records have gradients (Note [Gradients of containers]), so f' and its
// gradient can be differentiated like any function.
class CallRegion final : public DistantRegion {
 public:
  // The body of the function, and the root scope of the graph in which its
  // gradient is made.
  CallRegion(Analysis& analysis, graph::Scope scope)
      : DistantRegion(analysis, FrameId::kRoot, std::move(scope)),
        carrier_(analysis, "record") {}

  // Takes all values that were requested out of `record`, a tensor of the
  // gradient's graph, and returns the record that the body makes. REQUIRES:
  // called once, at the end.
  Result<Endpoint> finish(const Output& record);

 protected:
  // A placeholder for the value until finish().
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

  Carrier carrier_;
  std::deque<Group> groups_;
};

}  // namespace tagflow::autodiff
