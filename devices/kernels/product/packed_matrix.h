// PackedMatrix: a weight matrix, in panels.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/kernels/product/panel_product.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// [inputs, outputs], or [outputs, inputs] if it is transposed.
struct MatrixLayout {
  int64_t inputs = 0, outputs = 0;
  bool transposed = false;
};

// REQUIRES: it is of rank 2.
MatrixLayout layout_of_matrix(const Shape& shape, bool is_transposed);

// The same columns of each segment. All columns are divided evenly into
// segments.
struct MatrixColumns {
  int64_t segments = 1;
  int64_t first = 0, count = 0;  // of a segment

  bool operator==(const MatrixColumns&) const = default;
};

// A matrix of floats, and copies of its columns in panels, made on first use.
// Thread-safe. Nobody may change the tensor's elements while this lives.
class PackedMatrix {
 public:
  // Whether the tensor is a matrix of floats with elements, and has enough
  // columns that panels are not mostly zeros.
  static bool can_pack(const Tensor& tensor, bool is_transposed);
  // REQUIRES: can_pack().
  PackedMatrix(Tensor tensor, bool is_transposed)
      : layout_(layout_of_matrix(tensor.shape(), is_transposed)),
        tensor_(std::move(tensor)) {}

  const MatrixLayout& layout() const { return layout_; }

  // The columns of each segment, one segment after another. They live as long
  // as the matrix. The first caller packs them; callers that need others
  // meanwhile do not wait. Throws std::bad_alloc.
  Panels panels(const MatrixColumns& columns);

 private:
  struct Free {
    void operator()(float* elements) const;
  };
  using Elements = std::unique_ptr<float[], Free>;
  struct Packed {
    explicit Packed(const MatrixColumns& wanted) : columns(wanted) {}
    const MatrixColumns columns;
    std::once_flag once;
    Elements elements;
  };

  Packed& find(const MatrixColumns& columns);
  Elements pack(const MatrixColumns& columns, const Panels& panels) const;
  // Copies neighbouring columns to the same columns of a panel.
  void copy_columns(int64_t first, int64_t count, float* to) const;

  const MatrixLayout layout_;
  const Tensor tensor_;
  std::mutex mutex_;
  std::deque<Packed> packed_;  // their addresses stay the same
};

}  // namespace tagflow::devices
