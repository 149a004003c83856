// Evaluator: executes nodes for constant folding; graph/ has no kernels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // The outputs of one execution of the node, with these values as inputs. An
  // error if the node fails, cannot be executed here, takes long, or needs more
  // than `max_bytes` of memory for elements and the contents of strings. An
  // exception counts as such an error. REQUIRES: the op is not stateful.
  virtual Result<std::vector<Tensor>> evaluate(const Node& node,
                                               std::span<const Tensor> inputs,
                                               size_t max_bytes) const = 0;
};

}  // namespace tagflow::graph
