// PackedWeights: the result of _PackWeights, for one loop.
#pragma once

#include "devices/kernels/product/packed_matrix.h"
#include "graph/handle.h"

namespace tagflow::devices {

// A weight matrix: a tensor, and its panels if it can be packed.
// Thread-safe. Nobody may change the tensor's elements while this lives.
class PackedWeights final : public VariantValue {
 public:
  PackedWeights(Tensor tensor, bool is_transposed);

  // "PackedWeights of float[3,4]".
  std::string describe() const override;

  const Tensor& tensor() const { return tensor_; }
  // Null if it cannot be packed.
  PackedMatrix* matrix() const { return matrix_.get(); }

 private:
  const Tensor tensor_;
  const std::unique_ptr<PackedMatrix> matrix_;
};

}  // namespace tagflow::devices
