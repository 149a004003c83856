// Products of rows by a matrix in panels: the innermost loops of most layers.
#pragma once

#include <cstdint>
#include <span>

namespace tagflow::devices {

// The columns of a matrix of floats, cut into panels of kPanelColumns. A panel
// is stored row by row; the last one is filled up with zeros.
inline constexpr int64_t kPanelColumns = 32;

struct Panels {
  const float* first = nullptr;  // aligned to 64 bytes
  int64_t inputs = 0;            // rows of the matrix
  int64_t columns = 0;

  int64_t count() const {
    return (columns + kPanelColumns - 1) / kPanelColumns;
  }
};

// Element k of row i is first[i * stride + k]; where the input is said to be
// transposed, first[k * stride + i].
struct RowInput {
  const float* first = nullptr;
  int64_t channels = 0;  // of a row
  int64_t stride = 0;
};

// Rows of the output; from one to the next it is `stride` elements.
struct RowOutput {
  float* first = nullptr;
  int64_t stride = 0;
};

// output = inputs * panels + bias, for so many rows from `first_row` on. The
// channels of the inputs, one after another, make a row. `bias` is null where
// there is none. Each element is summed in the order of the matrix's rows,
// whatever is computed with it: so it is the same bit by bit on one processor.
// Thread-safe. REQUIRES: the channels add up to the rows of the matrix; the
// output overlaps nothing else; the kernel is below num_panel_kernels().
void multiply_panels(std::span<const RowInput> inputs, int64_t first_row,
                     int64_t rows, const Panels& panels, const float* bias,
                     RowOutput output, int kernel = 0);
// output += input * panels, where the input is a transposed one. The products
// are summed first, and the sum is added. Otherwise the same, from row 0 on.
void add_transposed_panels(const RowInput& input, int64_t rows,
                           const Panels& panels, RowOutput output,
                           int kernel = 0);

// How many kernels this processor can run. Number 0 is the best; the others are
// for tests.
int num_panel_kernels();
// So many rows a kernel computes at a time.
int64_t panel_rows(int kernel = 0);

}  // namespace tagflow::devices
