#include "devices/cpu/packed_matrix.h"

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

Panels PackedMatrix::panels(const MatrixColumns& columns) {
  Panels panels{nullptr, layout_.inputs, columns.segments * columns.count};
  const std::lock_guard lock(mutex_);
  for (const auto& [known, elements] : packed_)
    if (known == columns) {
      panels.first = elements.get();
      return panels;
    }
  Elements packed = pack(columns, panels);
  panels.first = packed.get();
  packed_.emplace_back(columns, std::move(packed));
  return panels;
}

PackedMatrix::Elements PackedMatrix::pack(const MatrixColumns& columns,
                                          const Panels& panels) const {
  constexpr size_t kAlignment = 64;
  // A panel is a multiple of that.
  const int64_t size = panels.count() * kPanelColumns * panels.inputs;
  Elements to(static_cast<float*>(
      std::aligned_alloc(kAlignment, size_t(size) * sizeof(float))));
  if (to == nullptr) throw std::bad_alloc();
  const auto* from = tensor_.data<float>();
  const int64_t width = layout_.outputs / columns.segments;
  const int64_t stride = layout_.transposed ? layout_.inputs : layout_.outputs;
  for (int64_t panel = 0; panel < panels.count(); ++panel) {
    float* const elements = to.get() + panel * panels.inputs * kPanelColumns;
    for (int64_t i = 0; i < kPanelColumns; ++i) {
      const int64_t at = panel * kPanelColumns + i;
      const int64_t column =
          at / columns.count * width + columns.first + at % columns.count;
      for (int64_t k = 0; k < panels.inputs; ++k)
        elements[k * kPanelColumns + i] = at >= panels.columns ? 0
                                          : layout_.transposed
                                              ? from[column * stride + k]
                                              : from[k * stride + column];
    }
  }
  return to;
}

}  // namespace tagflow::devices
