// LayerTail: the operands of a layer's element-wise ops, in one call.
#pragma once

#include <boost/container/static_vector.hpp>
#include <span>

#include "devices/kernels/elementwise/fused_tiles.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Floats only. The ops' operands are the segments of a product, which are
// computed part by part, and other tensors. Thread-safe once it is complete.
class LayerTail {
 public:
  // Adds the other operands, for results of that shape. False if one of them
  // is neither of that shape nor a single element.
  bool add_others(std::span<const Tensor> others, const Shape& result);
  // Whether the ops can run with so many segments before the other operands.
  bool fits(const FusedTiles& tiles, int64_t segments) const;
  // REQUIRES: it is of the results' shape.
  void add_output(Tensor& output);

  // Rows of segments; their results begin at element `begin`.
  struct Values {
    const float* first = nullptr;
    int64_t begin = 0;
    int64_t rows = 1, columns = 0;  // of each segment
    int64_t segments = 1;
    int64_t segment = 0;  // elements from one to the next, in a row
  };
  // Computes the elements of the outputs. REQUIRES: fits(), and all outputs
  // were added.
  void run(const FusedTiles& tiles, const Values& values) const;

  // Elements of a row of the results.
  int64_t row() const { return row_; }

 private:
  static constexpr size_t kMost = 64;  // as of a fused kernel

  int64_t row_ = 0;
  boost::container::static_vector<FusedRows, kMost> others_;
  boost::container::static_vector<std::byte*, kMost> outputs_;
};

}  // namespace tagflow::devices
