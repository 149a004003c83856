// WeightsValue: what _PackWeights makes, for one loop.
#pragma once

#include "devices/cpu/packed_product.h"
#include "graph/handle.h"

namespace tagflow::devices {

class WeightsValue final : public VariantValue {
 public:
  // `packed` is null where the library cannot have it.
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

// The layout of a matrix. REQUIRES: it is of rank 2.
WeightLayout layout_of_matrix(const Shape& shape, bool is_transposed);

}  // namespace tagflow::devices
