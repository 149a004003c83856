// WeightsValue: what _PackWeights makes, for one loop.
#pragma once

#include "devices/cpu/packed_product.h"
#include "graph/handle.h"

namespace tagflow::devices {

// A matrix, and where the library can have it the same in orders of its own.
// Thread-safe. Nobody may change the tensor's elements while this lives.
class WeightsValue final : public VariantValue {
 public:
  // `packed` is null where this build has no library, or the matrix no
  // elements.
  WeightsValue(Tensor tensor, std::shared_ptr<PackedWeights> packed)
      : tensor_(std::move(tensor)), packed_(std::move(packed)) {}

  // "PackedWeights of float[3,4]".
  std::string describe() const override;

  const Tensor& tensor() const { return tensor_; }
  PackedWeights* packed() const { return packed_.get(); }

 private:
  const Tensor tensor_;
  const std::shared_ptr<PackedWeights> packed_;
};

// Of [inputs, outputs], or [outputs, inputs] where it is transposed. REQUIRES:
// it is of rank 2.
WeightLayout layout_of_matrix(const Shape& shape, bool is_transposed);

}  // namespace tagflow::devices
