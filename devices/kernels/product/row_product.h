// Products of rows by a matrix that is used many times.
#pragma once

#include <boost/container/static_vector.hpp>
#include <functional>

#include "devices/kernel.h"
#include "devices/kernels/product/packed_matrix.h"

namespace tagflow::devices {

// The operands.
struct RowFactors {
  // If the elements of a row come from several tensors, one after another, each
  // tensor is an input.
  static constexpr size_t kMostInputs = 16;

  boost::container::static_vector<RowInput, kMostInputs> inputs;
  int64_t rows = 0;
  PackedMatrix& matrix;
  const float* bias = nullptr;  // of all outputs; null: there is none
};

// Estimated nanoseconds on one thread.
double row_product_cost(const MatrixLayout& layout, int64_t rows);

// Computes [rows, outputs], on all workers if that pays. Throws std::bad_alloc.
// Thread-safe for separate outputs. REQUIRES: there are rows, and their
// channels are the matrix's inputs.
void multiply_rows(const KernelContext& context, const RowFactors& factors,
                   float* out);

// A block of a product: some rows, and the same columns of each segment side by
// side. The columns are divided evenly into segments.
struct RowBlock {
  const float* values = nullptr;  // rows of segments * columns elements
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;  // in a segment
};

// Computes the product block by block, without storing it as a whole, and calls
// take(block) on the thread that computed the block; its values are valid
// during the call. An exception of take() is thrown here. Otherwise as
// multiply_rows(). REQUIRES: the outputs are a multiple of the segments.
void multiply_row_blocks(const KernelContext& context,
                         const RowFactors& factors, int64_t segments,
                         const std::function<void(const RowBlock&)>& take);

}  // namespace tagflow::devices
