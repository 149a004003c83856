// The interface to gradients for lowering SymbolicGradient nodes; graph/ itself
// has no gradients.
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

  // Adds the gradients of the sum of all `ys`, weighted with `grads`, by `xs`
  // to the graph: dense, of the types of xs, and zeros if no y depends on the
  // x. New nodes are named `prefix`, a slash and a name. An error leaves the
  // graph unusable.
  virtual Result<std::vector<Endpoint>> make(Graph& graph,
                                             const std::string& prefix,
                                             std::span<const Endpoint> ys,
                                             std::span<const Endpoint> grads,
                                             std::span<const Endpoint> xs) = 0;
};

// Sets the maker that lowers SymbolicGradients; it must never be destroyed.
void set_gradient_maker(GradientMaker* maker);
// Null if none was set.
GradientMaker* gradient_maker();

}  // namespace tagflow::graph
