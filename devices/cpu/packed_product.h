// Convolutions and matrix products by weights that serve many times: these are
// brought into the order that the library likes best, once.
#pragma once

#include <functional>
#include <memory>

#include "devices/cpu/nn_geometry.h"

namespace tagflow::devices {

// [height, width, input channels of a group, output channels], of float; output
// channels of a group are next to each other.
struct WeightLayout {
  int64_t height = 1, width = 1, inputs = 0, outputs = 0;
  int64_t groups = 1;
  bool transposed = false;  // [outputs, inputs]; then of a single position

  bool operator==(const WeightLayout&) const = default;
};

// Weights, and copies of them in each order that a product has asked for.
// Thread-safe.
class PackedWeights {
 public:
  // Null where there is no library for it in this build. REQUIRES: no size is
  // 0, and the tensor, of any shape, has the elements, which nobody changes.
  static std::shared_ptr<PackedWeights> make(const WeightLayout& layout,
                                             Tensor tensor);
  virtual ~PackedWeights() = default;

  const WeightLayout& layout() const { return layout_; }
  const Tensor& tensor() const { return tensor_; }

 protected:
  PackedWeights(const WeightLayout& layout, Tensor tensor)
      : layout_(layout), tensor_(std::move(tensor)) {}

 private:
  const WeightLayout layout_;
  const Tensor tensor_;
};

// Made for one node. Keeps what it prepared for the input shapes that it met
// last. Thread-safe.
class PackedProduct {
 public:
  // Null where there is no library for it in this build. REQUIRES: no size is
  // 0.
  static std::unique_ptr<PackedProduct> make(const WeightLayout& layout);
  virtual ~PackedProduct() = default;

  // What is multiplied, as pointers to elements with the channels last.
  struct Factors {
    PackedWeights& weights;  // of the product's layout
    const float* in = nullptr;
    const float* bias = nullptr;  // null: there is none
  };

  // Told of elements [begin, end) of the output when they are there, on the
  // thread that made them, which may do as it likes with them. Must not throw.
  using Finish = std::function<void(int64_t begin, int64_t end)>;
  // Computes it, with the bias added. The geometry's channels are inputs times
  // groups. False, and nothing was done, where the library does not do this.
  virtual Result<bool> compute(const KernelContext& context,
                               const Geometry& geometry, const Factors& factors,
                               float* out, const Finish& finish) = 0;

  // Part of a product of rows. Of each of the segments into which the columns
  // are cut evenly, it has the same ones, and these next to each other.
  struct Block {
    const float* values = nullptr;  // rows of segments * columns elements
    int64_t first_row = 0, rows = 0;
    int64_t first_column = 0, columns = 0;  // of a segment
  };
  // Told of a block by the thread that made it, and that alone sees it. Must
  // not throw.
  using Take = std::function<void(const Block&)>;
  // The same in blocks, and nowhere else. REQUIRES: the geometry is of rows,
  // and the outputs are a multiple of the segments.
  virtual Result<bool> compute_blocks(const KernelContext& context,
                                      const Geometry& geometry,
                                      const Factors& factors, int64_t segments,
                                      const Take& take) = 0;
};

}  // namespace tagflow::devices
