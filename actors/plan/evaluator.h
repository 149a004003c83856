// KernelEvaluator: folds constants with the kernels of the CPU.
#pragma once

#include <atomic>
#include <cstdint>

#include "graph/passes/evaluator.h"

namespace tagflow::actors {

// Rejects asynchronous kernels, nodes that use files, and nodes of a high
// estimated cost; also all nodes together may cost a second at most, however
// many the graph has.
// Thread-safe.
class KernelEvaluator final : public graph::Evaluator {
 public:
  static constexpr int64_t kMostNanosecondsInAll = 1'000'000'000;

  Result<std::vector<Tensor>> evaluate(const graph::Node& node,
                                       std::span<const Tensor> inputs,
                                       size_t max_bytes) const override;

 private:
  // Takes so many of the nanoseconds that are left, if there are as many.
  bool take(int64_t nanoseconds) const;

  // Of kMostNanosecondsInAll.
  mutable std::atomic<int64_t> left_{kMostNanosecondsInAll};
};

}  // namespace tagflow::actors
