// Convolutions and matrix products by weights that do not change: these are
// brought into the order that the library likes best, once.
#pragma once

#include <functional>
#include <memory>

#include "devices/cpu/nn_geometry.h"

namespace tagflow::devices {

// Made for one node. Keeps, beside the weights in each order that was needed,
// what it prepared for the input shapes that it met last. Thread-safe.
class PackedProduct {
 public:
  // [height, width, input channels of a group, output channels], of float;
  // output channels of a group are next to each other.
  struct Weights {
    Tensor tensor;  // of any shape with these elements
    int64_t height = 1, width = 1, inputs = 0, outputs = 0;
    int64_t groups = 1;
    bool transposed = false;  // [outputs, inputs]; then of a single position
  };
  // Null where there is no library for it in this build. REQUIRES: no size is
  // 0, and the tensor has the elements.
  static std::unique_ptr<PackedProduct> make(Weights weights);
  virtual ~PackedProduct() = default;

  // Told of elements [begin, end) of the output when they are there, on the
  // thread that made them, which may do as it likes with them. Must not throw.
  using Finish = std::function<void(int64_t begin, int64_t end)>;
  // Computes it, the bias added where that is not null, of elements with the
  // channels last. The geometry's channels are inputs times groups. False,
  // and nothing was done, where the library does not do this.
  virtual Result<bool> compute(const KernelContext& context,
                               const Geometry& geometry, const float* in,
                               const float* bias, float* out,
                               const Finish& finish) = 0;
};

}  // namespace tagflow::devices
