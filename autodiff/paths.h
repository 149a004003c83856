// Paths: which tensors are between xs and ys, so that they have gradients.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autodiff/analysis.h"

namespace tagflow::autodiff {

// The tensors on which some y depends and that depend on some x, by edges that
// have a derivative, loops included. Thread-compatible.
class Paths {
 public:
  using Set = std::unordered_set<Endpoint, graph::EndpointHash>;

  // `frame` is where xs and ys are; paths do not leave it, nor lead into its
  // next iteration. What is in `stops` counts as constant.
  Paths(const Analysis& analysis, FrameId frame, std::span<const Endpoint> xs,
        std::span<const Endpoint> ys, const Set& stops);

  bool has(const Endpoint& tensor) const { return needed_.contains(tensor); }
  // Whether it depends on an x.
  bool depends(const Endpoint& tensor) const {
    return before_.contains(tensor);
  }
  // Values also get from x to y by mutable stacks, where no edge leads from a
  // push to a pop: Note [Mutable stacks]. The pops that make some y depend on
  // an x in this way.
  std::vector<const Node*> hidden_pops(std::span<const Endpoint> ys) const;
  // The nodes on which the ys depend, whatever xs there are.
  std::unordered_set<const Node*> leading_to(
      std::span<const Endpoint> ys) const;
  // "x:0 -> a -> b -> y:0": a path through the node, for messages.
  std::string describe(const Node& node) const;

 private:
  using Links = std::unordered_map<Endpoint, Endpoint, graph::EndpointHash>;
  void follow(std::span<const Endpoint> xs, const Set& stops);
  void go_back(std::span<const Endpoint> ys);
  // The outputs that depend on that input in a way that has a derivative.
  void reach(const Use& use, const Endpoint& from, const Set& stops,
             std::vector<Endpoint>& open);

  const Analysis& analysis_;
  const FrameId frame_;
  Links before_;  // what leads to a tensor; of an x the x itself
  Links after_;   // what it leads to
  Set needed_;
};

// Whether tensors of the type have gradients: those of floating-point and
// complex types, what refers to such, and containers.
bool has_gradient(DataType dtype);

}  // namespace tagflow::autodiff
