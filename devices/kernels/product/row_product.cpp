// Note [Parts of a product of rows]
// Workers share a product part by part. If the matrix is small, a part has some
// of the rows and all columns, so that each worker has the matrix in its cache.
// Otherwise it has some of the columns, in as many rows as its result can hold
// in the cache; the row parts of some columns are consecutive. A block is a
// part whose result is not stored in place: it has the same columns of each
// segment, such as all gates of some units. The number of parts depends on the
// shapes only, not on the workers.
#include "devices/kernels/product/row_product.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "devices/kernels/part_count.h"
#include "devices/kernels/scratch.h"

namespace tagflow::devices {
namespace {

// A longer product is divided into several parts.
constexpr double kWorthCutting = 30e3;  // nanoseconds
constexpr int64_t kMostRows = 128;
constexpr int64_t kLeastRows = 8;
// This many weights stay in a core's cache.
constexpr int64_t kFewWeights = 160 << 10;
// Of a larger matrix, a part reads this many while its result stays there.
constexpr int64_t kPartWeights = 384 << 10;
// The maximum number of elements in the result of a part.
constexpr int64_t kMostMade = 256 << 10;

struct RowPart {
  int64_t row = 0, rows = 0;
  int64_t column = 0, columns = 0;  // in a segment
};

// The parts, in order.
class RowCut {
 public:
  RowCut(const MatrixLayout& layout, int64_t rows, int64_t segments)
      : rows_(rows), width_(layout.outputs / segments) {
    // In double: the product of the sizes may exceed int64_t.
    const double weights = double(layout.inputs) * double(layout.outputs);
    const double nanoseconds = row_product_cost(layout, rows);
    const int64_t wanted =
        nanoseconds < kWorthCutting
            ? 1
            : std::max<int64_t>(
                  2, parts_worth_sharing(nanoseconds,
                                         2 * weights * sizeof(float)));
    row_parts_ = (rows + kMostRows - 1) / kMostRows;
    int64_t column_parts = 1;
    if (weights <= double(kFewWeights))
      row_parts_ = std::clamp(wanted, row_parts_,
                              std::max(row_parts_, rows / kLeastRows));
    else
      // A power of two divides evenly among the usual numbers of workers.
      column_parts = int64_t(
          std::bit_ceil(uint64_t(std::max(double(std::min<int64_t>(2, wanted)),
                                          std::ceil(weights / kPartWeights)))));
    // Whole panels, unless segments are fixed by the caller.
    const int64_t unit = segments == 1 ? kPanelColumns : kPanelColumns / 2;
    const int64_t units =
        ((width_ + column_parts - 1) / column_parts + unit - 1) / unit;
    const int64_t most_units =
        std::max<int64_t>(1, kMostMade / kLeastRows / segments / unit);
    columns_ = std::min(width_, std::min(units, most_units) * unit);
    column_parts_ = (width_ + columns_ - 1) / columns_;
    const int64_t most_rows =
        std::max<int64_t>(1, kMostMade / (segments * columns_));
    row_parts_ = std::max(row_parts_, (rows + most_rows - 1) / most_rows);
  }

  int64_t size() const { return row_parts_ * column_parts_; }

  RowPart part(int64_t i) const {
    RowPart part;
    part.row = begin_of(i % row_parts_);
    part.rows = begin_of(i % row_parts_ + 1) - part.row;
    part.column = i / row_parts_ * columns_;
    part.columns = std::min(columns_, width_ - part.column);
    return part;
  }

 private:
  // The first row of the part; a plain product could overflow.
  int64_t begin_of(int64_t row_part) const {
    return rows_ / row_parts_ * row_part +
           rows_ % row_parts_ * row_part / row_parts_;
  }

  const int64_t rows_, width_;
  int64_t row_parts_ = 1, column_parts_ = 1;
  int64_t columns_ = 0;  // in a part
};

// Calls run(part), on all workers.
template <class Run>
void run_parts(const KernelContext& context, const RowFactors& factors,
               int64_t segments, const Run& run) {
  const MatrixLayout& layout = factors.matrix.layout();
  const RowCut cut(layout, factors.rows, segments);
  const double cost = row_product_cost(layout, factors.rows);
  context.parallel_for(cut.size(), cost / double(cut.size()),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) run(cut.part(i));
                       });
}

}  // namespace

double row_product_cost(const MatrixLayout& layout, int64_t rows) {
  // Multiplications per nanosecond.
  const double rate = rows <= kMostRows ? 45 : 60;
  // Columns are computed some at a time.
  constexpr int64_t kAtATime = kPanelColumns / 2;
  const double columns = double(layout.outputs + kAtATime - 1);
  return double(rows) * double(layout.inputs) * std::floor(columns / kAtATime) *
         kAtATime / rate;
}

void multiply_rows(const KernelContext& context, const RowFactors& factors,
                   float* out) {
  const int64_t outputs = factors.matrix.layout().outputs;
  run_parts(context, factors, 1, [&](const RowPart& part) {
    const float* bias = factors.bias;
    multiply_panels({factors.inputs.data(), factors.inputs.size()}, part.row,
                    part.rows,
                    factors.matrix.panels({1, part.column, part.columns}),
                    bias == nullptr ? nullptr : bias + part.column,
                    {out + part.row * outputs + part.column, outputs});
  });
}

void multiply_row_blocks(const KernelContext& context,
                         const RowFactors& factors, int64_t segments,
                         const std::function<void(const RowBlock&)>& take) {
  const int64_t width = factors.matrix.layout().outputs / segments;
  run_parts(context, factors, segments, [&](const RowPart& part) {
    const int64_t columns = segments * part.columns;
    const size_t bytes =
        Scratch::rounded(size_t(part.rows * columns) * sizeof(float));
    const Scratch scratch(bytes + size_t(columns) * sizeof(float));
    auto* const values = static_cast<float*>(scratch.at(0));
    float* bias = nullptr;
    if (factors.bias != nullptr) {
      bias = static_cast<float*>(scratch.at(bytes));
      for (int64_t s = 0; s < segments; ++s)
        std::copy_n(factors.bias + s * width + part.column, part.columns,
                    bias + s * part.columns);
    }
    multiply_panels(
        {factors.inputs.data(), factors.inputs.size()}, part.row, part.rows,
        factors.matrix.panels({segments, part.column, part.columns}), bias,
        {values, columns});
    take({values, part.row, part.rows, part.column, part.columns});
  });
}

}  // namespace tagflow::devices
