// Without oneDNN, our own loops do all convolutions.
#include "devices/kernels/convolution/library_convolution.h"

namespace tagflow::devices {

std::unique_ptr<LibraryConvolution> LibraryConvolution::make(ConvRole) {
  return nullptr;
}

}  // namespace tagflow::devices
