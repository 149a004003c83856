// Where there is no oneDNN, all convolutions are done by our own loops.
#include "devices/cpu/convolution/library_convolution.h"

namespace tagflow::devices {

std::unique_ptr<LibraryConvolution> LibraryConvolution::make(ConvRole) {
  return nullptr;
}

}  // namespace tagflow::devices
