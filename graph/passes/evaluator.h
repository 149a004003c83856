// Evaluator: what constant folding computes with; graph/ has no kernels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // The outputs of one execution of the node, with these values for its
  // inputs. An error where that fails, where nothing here can execute the
  // node, or where it takes long, or more than `max_bytes` of memory for
  // elements. What strings hold beside is not counted: the caller sees to it.
  // What it throws is such an error. REQUIRES: the op is not stateful.
  virtual Result<std::vector<Tensor>> evaluate(const Node& node,
                                               std::span<const Tensor> inputs,
                                               size_t max_bytes) const = 0;
};

}  // namespace tagflow::graph
