#include "devices/kernels/product/outer_products.h"

#include <algorithm>
#include <utility>

#include "devices/kernels/product/panel_product.h"
#include "devices/kernels/scratch.h"

namespace tagflow::devices {
namespace {

// Packs some columns of all a, or all b, side by side; rows are `stride` apart.
// Elements between a row's end and the next row are 0.
void pack_columns(std::span<const RowPairs> pairs,
                  const float* RowPairs::*which, int64_t width, int64_t first,
                  int64_t count, int64_t stride, float* to) {
  for (const RowPairs& pair : pairs) {
    const float* from = pair.*which + first;
    for (int64_t row = 0; row < pair.rows; ++row) {
      std::copy_n(from, count, to);
      std::fill(to + count, to + stride, 0.0f);
      from += width;
      to += stride;
    }
  }
}

constexpr double kPackedPerNanosecond = 4, kMultipliedPerNanosecond = 60;

}  // namespace

// Both are packed. All of a is packed in blocks of as many columns as the
// innermost loop takes at a time: these are read again for each panel of b. Of
// b each worker packs only the panel that it multiplies.
Status add_outer_products(const KernelContext& context,
                          std::span<const RowPairs> pairs, int64_t m, int64_t n,
                          float* sum) {
  int64_t rows = 0;
  for (const RowPairs& pair : pairs) rows += pair.rows;
  const int64_t width = panel_rows();
  const int64_t stride = (width + 3) / 4 * 4;
  const int64_t blocks = (m + width - 1) / width;
  const int64_t dims[] = {blocks, rows, stride};
  TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
  TAGFLOW_ASSIGN(Tensor packed, Tensor::allocate(DataType::kFloat, shape,
                                                 context.allocator()));
  auto* const block = packed.mutable_data<float>();
  context.parallel_for(blocks, double(rows * stride) / kPackedPerNanosecond,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i)
                           pack_columns(pairs, &RowPairs::a, m, i * width,
                                        std::min(width, m - i * width), stride,
                                        block + i * rows * stride);
                       });
  // A part is one panel and, if there are few panels, some of the blocks.
  constexpr int64_t kEnough = 8;
  const int64_t panels = (n + kPanelColumns - 1) / kPanelColumns;
  const int64_t splits =
      std::clamp<int64_t>((kEnough + panels - 1) / panels, 1, (blocks + 3) / 4);
  const double multiplications =
      double(rows) * double(kPanelColumns) * double(m) / double(splits);
  context.parallel_for(
      panels * splits, multiplications / kMultipliedPerNanosecond,
      [&](int64_t begin, int64_t end) {
        const Scratch scratch(size_t(rows * kPanelColumns) * sizeof(float));
        auto* const panel = static_cast<float*>(scratch.at(0));
        int64_t packed_column = -1;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i / splits * kPanelColumns;
          const int64_t count = std::min(kPanelColumns, n - column);
          if (std::exchange(packed_column, column) != column)
            pack_columns(pairs, &RowPairs::b, n, column, count, kPanelColumns,
                         panel);
          const int64_t last = blocks * (i % splits + 1) / splits;
          for (int64_t b = blocks * (i % splits) / splits; b < last; ++b) {
            const int64_t row = b * width;
            add_transposed_panels({block + b * rows * stride, rows, stride},
                                  std::min(width, m - row),
                                  {panel, rows, count},
                                  {sum + row * n + column, n});
          }
        }
      });
  return {};
}

}  // namespace tagflow::devices
