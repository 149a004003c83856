#include "devices/kernels/product/packed_matrix.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tagflow::devices {

MatrixLayout layout_of_matrix(const Shape& shape, bool is_transposed) {
  return {shape.dim(is_transposed ? 1 : 0), shape.dim(is_transposed ? 0 : 1),
          is_transposed};
}

void PackedMatrix::Free::operator()(float* elements) const {
  std::free(elements);
}

bool PackedMatrix::can_pack(const Tensor& tensor, bool is_transposed) {
  constexpr int64_t kLeastColumns = 8;
  return tensor.dtype() == DataType::kFloat && tensor.rank() == 2 &&
         tensor.num_elements() > 0 &&
         tensor.dim(is_transposed ? 0 : 1) >= kLeastColumns;
}

PackedMatrix::Packed& PackedMatrix::find(const MatrixColumns& columns) {
  const std::lock_guard lock(mutex_);
  for (Packed& packed : packed_)
    if (packed.columns == columns) return packed;
  return packed_.emplace_back(columns);
}

Panels PackedMatrix::panels(const MatrixColumns& columns) {
  Panels panels{nullptr, layout_.inputs, columns.segments * columns.count};
  Packed& packed = find(columns);
  std::call_once(packed.once, [&] { packed.elements = pack(columns, panels); });
  panels.first = packed.elements.get();
  return panels;
}

PackedMatrix::Elements PackedMatrix::pack(const MatrixColumns& columns,
                                          const Panels& panels) const {
  constexpr size_t kAlignment = 64;
  // A panel's size is a multiple of that.
  const int64_t size = panels.count() * kPanelColumns * panels.inputs;
  Elements to(static_cast<float*>(
      std::aligned_alloc(kAlignment, size_t(size) * sizeof(float))));
  if (to == nullptr) throw std::bad_alloc();
  const int64_t width = layout_.outputs / columns.segments;
  for (int64_t panel = 0; panel < panels.count(); ++panel) {
    float* const rows = to.get() + panel * panels.inputs * kPanelColumns;
    // Columns that are also contiguous in the matrix.
    for (int64_t i = 0, run = 0; i < kPanelColumns; i += run) {
      const int64_t at = panel * kPanelColumns + i;
      run = kPanelColumns - i;
      if (at >= panels.columns) {
        for (int64_t k = 0; k < panels.inputs; ++k)
          std::fill_n(rows + k * kPanelColumns + i, run, 0.0f);
        continue;
      }
      run = std::min(run, columns.count - at % columns.count);
      copy_columns(
          at / columns.count * width + columns.first + at % columns.count, run,
          rows + i);
    }
  }
  return to;
}

void PackedMatrix::copy_columns(int64_t first, int64_t count, float* to) const {
  const auto* const from = tensor_.data<float>();
  if (!layout_.transposed) {
    for (int64_t k = 0; k < layout_.inputs; ++k)
      std::copy_n(from + k * layout_.outputs + first, count,
                  to + k * kPanelColumns);
    return;
  }
  // This many rows of a panel stay in the first-level cache.
  constexpr int64_t kRows = 16;
  for (int64_t row = 0; row < layout_.inputs; row += kRows) {
    const int64_t end = std::min(row + kRows, layout_.inputs);
    for (int64_t j = 0; j < count; ++j) {
      const float* const column = from + (first + j) * layout_.inputs;
      for (int64_t k = row; k < end; ++k) to[k * kPanelColumns + j] = column[k];
    }
  }
}

}  // namespace tagflow::devices
