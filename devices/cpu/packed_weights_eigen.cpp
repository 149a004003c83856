// Where there is no oneDNN, weights stay as they are.
#include "devices/cpu/packed_product.h"

namespace tagflow::devices {

std::shared_ptr<PackedWeights> PackedWeights::make(const WeightLayout&,
                                                   Tensor) {
  return nullptr;
}

}  // namespace tagflow::devices
