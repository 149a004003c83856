// KernelEvaluator: folds constants with the kernels of the CPU.
#pragma once

#include "graph/passes/evaluator.h"

namespace tagflow::actors {

// Rejects asynchronous kernels, nodes that use files, and nodes of a high
// estimated cost.
// Thread-safe.
class KernelEvaluator final : public graph::Evaluator {
 public:
  Result<std::vector<Tensor>> evaluate(const graph::Node& node,
                                       std::span<const Tensor> inputs,
                                       size_t max_bytes) const override;
};

}  // namespace tagflow::actors
