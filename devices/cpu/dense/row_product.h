// Products of rows by a matrix that serves many times.
#pragma once

#include <boost/container/static_vector.hpp>
#include <functional>

#include "devices/cpu/dense/packed_matrix.h"
#include "devices/kernel.h"

namespace tagflow::devices {

// What is multiplied.
struct RowFactors {
  // Of rows whose elements come from several tensors, one after another, there
  // is one input for each.
  static constexpr size_t kMostInputs = 16;

  boost::container::static_vector<RowInput, kMostInputs> inputs;
  int64_t rows = 0;
  PackedMatrix& matrix;
  const float* bias = nullptr;  // of all outputs; null: there is none
};

// Estimated nanoseconds of one thread.
double row_product_cost(const MatrixLayout& layout, int64_t rows);

// Computes [rows, outputs], on all workers where it is worth it. Throws
// std::bad_alloc. Thread-safe, with an output of its own. REQUIRES: there are
// rows, and their channels are the matrix's inputs.
void multiply_rows(const KernelContext& context, const RowFactors& factors,
                   float* out);

// A block of a product: some rows, and the same columns of each of the segments
// into which the columns are cut evenly, side by side.
struct RowBlock {
  const float* values = nullptr;  // rows of segments * columns elements
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;  // of a segment
};

// Computes the product block by block, without storing it as a whole, and calls
// take(block) on the thread that made the block, whose values are valid during
// the call. What it throws is thrown here. Otherwise as multiply_rows().
// REQUIRES: the outputs are a multiple of the segments.
void multiply_row_blocks(const KernelContext& context,
                         const RowFactors& factors, int64_t segments,
                         const std::function<void(const RowBlock&)>& take);

}  // namespace tagflow::devices
