// Convolutions and their gradients by the primitives of a library, for filters
// that may change from call to call. For constant filters, packed_convolution.h
// is better.
#pragma once

#include <memory>

#include "devices/kernels/convolution/conv_base.h"
#include "devices/kernels/convolution/conv_loops.h"

namespace tagflow::devices {

// Made for one node. Caches what it prepared for the most recent shapes.
// Thread-safe.
class LibraryConvolution {
 public:
  // Null if this build has no library for it.
  static std::unique_ptr<LibraryConvolution> make(ConvRole role);
  virtual ~LibraryConvolution() = default;

  // [positions, channels] of the input and of the output, [taps, channels of a
  // group, output channels] of the filter. The role's own tensor is written,
  // through `made`, and the other two are read.
  struct Elements {
    const float* in = nullptr;
    const float* filter = nullptr;
    const float* out = nullptr;
    float* made = nullptr;
  };
  // The result does not depend on the number of workers. False if the
  // library does not support it, or the shape is not worth preparing: then the
  // loops of conv_loops.h must compute it. ResourceExhausted when out of
  // memory. REQUIRES: no size is 0.
  virtual Result<bool> compute(const KernelContext& context,
                               const Convolution& conv,
                               const Elements& elements) = 0;
};

}  // namespace tagflow::devices
