// What a SymbolicGradient node is lowered by: gradients, of which graph/ knows
// nothing but this.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Thread-safe.
class GradientMaker {
 public:
  virtual ~GradientMaker() = default;

  // Adds to the graph the gradients by `xs` of the sum of all `ys`, each times
  // its element of `grads`: dense, of the types of xs, and zeros where no y
  // depends on the x. New nodes are named `prefix` and a slash and more. An
  // error leaves the graph unusable.
  virtual Result<std::vector<Endpoint>> make(Graph& graph,
                                             const std::string& prefix,
                                             std::span<const Endpoint> ys,
                                             std::span<const Endpoint> grads,
                                             std::span<const Endpoint> xs) = 0;
};

// From now on SymbolicGradients are lowered by `maker`, which lives for ever.
void set_gradient_maker(GradientMaker* maker);
// Null where none was set.
GradientMaker* gradient_maker();

}  // namespace tagflow::graph
