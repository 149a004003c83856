// Products of rows by a matrix in panels: the innermost loops of most layers.
#pragma once

#include <cstdint>
#include <span>

namespace tagflow::devices {

// Columns of a matrix of floats, side by side: of a panel comes first what it
// has of the first row, then of the second. What the last panel lacks is 0.
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

// output = inputs * panels + bias, for so many rows from `first_row` on. A row
// of the inputs is one of each, next to each other. `bias` is null where there
// is none. Each element is summed in the order of the matrix's rows, whatever
// is computed with it. REQUIRES: the channels add up to the rows of the matrix.
void multiply_panels(std::span<const RowInput> inputs, int64_t first_row,
                     int64_t rows, const Panels& panels, const float* bias,
                     RowOutput output);
// So many rows are computed at a time, on this processor.
int64_t panel_rows();
// output += inputs * panels, where the inputs are transposed ones. The sum of
// the products is added at once.
void add_transposed_panels(std::span<const RowInput> inputs, int64_t first_row,
                           int64_t rows, const Panels& panels,
                           RowOutput output);

}  // namespace tagflow::devices
