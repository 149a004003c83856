// WeightsValue: what _PackWeights makes, for one loop.
#pragma once

#include "devices/cpu/packed_matrix.h"
#include "graph/handle.h"

namespace tagflow::devices {

// A matrix, and the same in panels. Thread-safe. Nobody may change the tensor's
// elements while this lives.
class WeightsValue final : public VariantValue {
 public:
  WeightsValue(Tensor tensor, bool is_transposed);

  // "PackedWeights of float[3,4]".
  std::string describe() const override;

  const Tensor& tensor() const { return tensor_; }
  // Null where the tensor is no matrix, or has no elements.
  PackedMatrix* matrix() const { return matrix_.get(); }

 private:
  const Tensor tensor_;
  const std::unique_ptr<PackedMatrix> matrix_;
};

}  // namespace tagflow::devices
