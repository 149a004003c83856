// Convolutions with constant weights: these are reordered once into the
// library's preferred layout.
#pragma once

#include <functional>
#include <memory>

#include "devices/kernels/convolution/geometry.h"

namespace tagflow::devices {

// [height, width, input channels of a group, output channels], of float; output
// channels of a group are contiguous.
struct WeightLayout {
  int64_t height = 1, width = 1, inputs = 0, outputs = 0;
  int64_t groups = 1;
};

// Made for one node. Caches what it prepared for the most recent input shapes.
// Thread-safe.
class PackedConvolution {
 public:
  // Null if this build has no library for it. REQUIRES: no size is 0; the
  // tensor has as many elements as the layout says, and nobody changes them.
  static std::unique_ptr<PackedConvolution> make(const WeightLayout& layout,
                                                 Tensor weights);
  virtual ~PackedConvolution() = default;

  // The other operands, as pointers to elements with the channels last.
  struct Factors {
    const float* in = nullptr;
    const float* bias = nullptr;  // null: there is none
  };

  // Called with elements [begin, end) of the output when they are computed, on
  // the thread that computed them. It may change these elements. Must not
  // throw.
  using Finish = std::function<void(int64_t begin, int64_t end)>;
  // Computes it, with the bias added. The geometry's channels are inputs times
  // groups. False, and nothing was done, if the library does not support it.
  // ResourceExhausted, where part of the output may have been written.
  virtual Result<bool> compute(const KernelContext& context,
                               const Geometry& geometry, const Factors& factors,
                               float* out, const Finish& finish) = 0;
};

}  // namespace tagflow::devices
