// Paths: the tensors between xs and ys, which have gradients.
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

  // `frame` is the frame of the ys; xs are in it or in frames around it. Paths
  // do not leave these frames, and do not lead into their next iterations.
  // Tensors in `stops` count as constants.
  Paths(const Analysis& analysis, FrameId frame, std::span<const Endpoint> xs,
        std::span<const Endpoint> ys, const Set& stops);

  bool has(const Endpoint& tensor) const { return needed_.contains(tensor); }
  // Whether it depends on an x.
  bool depends(const Endpoint& tensor) const {
    return before_.contains(tensor);
  }
  // The pops of mutable stacks that make some y depend on an x, though no edge
  // leads from a push to its pop (Note [Mutable stacks]).
  std::vector<const Node*> hidden_pops(std::span<const Endpoint> ys) const;
  // The nodes on which the ys depend, regardless of the xs.
  std::unordered_set<const Node*> leading_to(
      std::span<const Endpoint> ys) const;
  // A path through the node, for messages: "x:0 -> a -> b -> y:0".
  std::string describe(const Node& node) const;

 private:
  using Links = std::unordered_map<Endpoint, Endpoint, graph::EndpointHash>;
  void follow(std::span<const Endpoint> xs, const Set& stops);
  void go_back(std::span<const Endpoint> ys);
  // The outputs that depend on that input in a way that has a derivative.
  void reach(const Use& use, const Endpoint& from, const Set& stops,
             std::vector<Endpoint>& open);

  bool is_around(FrameId frame) const;
  bool leads_to(const Node& node, size_t index, int port) const;

  const Analysis& analysis_;
  const FrameId frame_;
  Links before_;  // the tensor before each; an x has itself
  Links after_;   // the tensor after each
  Set needed_;
};

// Whether tensors of the type have gradients: floating-point and complex
// tensors, references and handles of such, and containers.
bool has_gradient(DataType dtype);

}  // namespace tagflow::autodiff
