// Without oneDNN, constant filters get no special treatment.
#include "devices/kernels/convolution/packed_convolution.h"

namespace tagflow::devices {

std::unique_ptr<PackedConvolution> PackedConvolution::make(const WeightLayout&,
                                                           Tensor) {
  return nullptr;
}

}  // namespace tagflow::devices
