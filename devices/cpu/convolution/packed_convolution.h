// Convolutions by weights that are known: these are brought into the order that
// the library likes best, once.
#pragma once

#include <functional>
#include <memory>

#include "devices/cpu/nn/geometry.h"

namespace tagflow::devices {

// [height, width, input channels of a group, output channels], of float; output
// channels of a group are next to each other.
struct WeightLayout {
  int64_t height = 1, width = 1, inputs = 0, outputs = 0;
  int64_t groups = 1;
};

// Made for one node. Keeps what it prepared for the input shapes that it met
// last. Thread-safe.
class PackedConvolution {
 public:
  // Null where there is no library for it in this build. REQUIRES: no size is
  // 0; the tensor has as many elements as the layout says, and nobody changes
  // them.
  static std::unique_ptr<PackedConvolution> make(const WeightLayout& layout,
                                                 Tensor weights);
  virtual ~PackedConvolution() = default;

  // What the weights meet, as pointers to elements with the channels last.
  struct Factors {
    const float* in = nullptr;
    const float* bias = nullptr;  // null: there is none
  };

  // Told of elements [begin, end) of the output when they are there, on the
  // thread that made them, which may do as it likes with them. Must not throw.
  using Finish = std::function<void(int64_t begin, int64_t end)>;
  // Computes it, with the bias added. The geometry's channels are inputs times
  // groups. False, and nothing was done, where the library does not do this.
  // ResourceExhausted, where part of the output may have been written.
  virtual Result<bool> compute(const KernelContext& context,
                               const Geometry& geometry, const Factors& factors,
                               float* out, const Finish& finish) = 0;
};

}  // namespace tagflow::devices
