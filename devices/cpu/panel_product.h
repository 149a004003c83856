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

// Elements of rows that are next to each other.
struct RowInput {
  const float* first = nullptr;
  int64_t channels = 0;  // of a row
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

}  // namespace tagflow::devices
