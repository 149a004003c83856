// Products of rows by a matrix in panels: the innermost loops of most layers.
#pragma once

#include <cstdint>
#include <span>

namespace tagflow::devices {

// The columns of a matrix of floats, divided into panels of kPanelColumns. A
// panel is stored row by row; the last one is padded with zeros.
inline constexpr int64_t kPanelColumns = 32;

struct Panels {
  const float* first = nullptr;  // aligned to 64 bytes
  int64_t inputs = 0;            // rows of the matrix
  int64_t columns = 0;

  int64_t count() const {
    return (columns + kPanelColumns - 1) / kPanelColumns;
  }
};

// Element k of row i is first[i * stride + k]; for a transposed input, first[k
// * stride + i].
struct RowInput {
  const float* first = nullptr;
  int64_t channels = 0;  // in a row
  int64_t stride = 0;
};

// Rows of the output, `stride` elements apart.
struct RowOutput {
  float* first = nullptr;
  int64_t stride = 0;
};

// output = inputs * panels + bias, for so many rows from `first_row` on. The
// channels of the inputs are concatenated to a row. `bias` may be null. Each
// element is summed in the order of the matrix's rows, regardless of the other
// elements: so it is the same bit by bit on one CPU. Thread-safe. REQUIRES: the
// channels add up to the rows of the matrix; the output overlaps nothing else;
// the kernel is below num_panel_kernels().
void multiply_panels(std::span<const RowInput> inputs, int64_t first_row,
                     int64_t rows, const Panels& panels, const float* bias,
                     RowOutput output, int kernel = 0);
// output += input * panels, for a transposed input. The products are summed
// first, and then the sum is added. Otherwise the same, from row 0 on.
void add_transposed_panels(const RowInput& input, int64_t rows,
                           const Panels& panels, RowOutput output,
                           int kernel = 0);

// The number of kernels that this CPU can run. Number 0 is the best; the others
// are for tests.
int num_panel_kernels();
// The number of rows that a kernel computes at a time.
int64_t panel_rows(int kernel = 0);

}  // namespace tagflow::devices
