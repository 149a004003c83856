#include "devices/cpu/packed_weights_onednn.h"

#include <algorithm>

namespace tagflow::devices {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto kFloat = dnnl::memory::data_type::f32;

}  // namespace

dnnl::memory::dims weight_dims(const WeightLayout& layout, int64_t columns) {
  if (layout.groups == 1)
    return {columns, layout.inputs, layout.height, layout.width};
  return {layout.groups, columns / layout.groups, layout.inputs, layout.height,
          layout.width};
}

dnnl::memory memory_at(const Desc& desc, const float* elements) {
  return {desc, onednn_engine(), const_cast<float*>(elements)};
}

dnnl::memory OneDnnWeights::ordered(const WeightColumns& columns) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, memory] : ordered_)
    if (known.segments == columns.segments && known.first == columns.first &&
        known.desc == columns.desc)
      return memory;
  dnnl::memory to(columns.desc, onednn_engine());
  std::vector<float> gathered;
  dnnl::memory from =
      columns.segments == 1 ? as_they_are(columns) : gather(columns, gathered);
  dnnl::stream stream(onednn_engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  ordered_.emplace_back(columns, to);
  return to;
}

dnnl::memory OneDnnWeights::as_they_are(const WeightColumns& columns) const {
  const WeightLayout& l = layout();
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::dims dims = weight_dims(l, columns.count);
  const auto* elements = tensor().data<float>();
  if (columns.count == l.outputs)
    return memory_at(Desc(dims, kFloat,
                          l.groups > 1   ? Tag::hwigo
                          : l.transposed ? Tag::oihw
                                         : Tag::hwio),
                     elements);
  // Of a matrix.
  const dnnl::memory::dims strides =
      l.transposed ? dnnl::memory::dims{l.inputs, 1, 1, 1}
                   : dnnl::memory::dims{1, l.outputs, 1, 1};
  return memory_at(Desc(dims, kFloat, strides),
                   elements + columns.first * (l.transposed ? l.inputs : 1));
}

dnnl::memory OneDnnWeights::gather(const WeightColumns& columns,
                                   std::vector<float>& to) const {
  const WeightLayout& l = layout();
  const int64_t width = l.outputs / columns.segments;
  const int64_t count = columns.segments * columns.count;
  to.resize(size_t(l.inputs * count));
  const auto* from = tensor().data<float>();
  for (int64_t s = 0; s < columns.segments; ++s) {
    const int64_t first = s * width + columns.first;
    float* const at =
        to.data() + s * columns.count * (l.transposed ? l.inputs : 1);
    if (l.transposed) {
      std::copy_n(from + first * l.inputs, columns.count * l.inputs, at);
    } else {
      for (int64_t row = 0; row < l.inputs; ++row)
        std::copy_n(from + row * l.outputs + first, columns.count,
                    at + row * count);
    }
  }
  const dnnl::memory::dims strides = l.transposed
                                         ? dnnl::memory::dims{l.inputs, 1, 1, 1}
                                         : dnnl::memory::dims{1, count, 1, 1};
  return memory_at(Desc(weight_dims(l, count), kFloat, strides), to.data());
}

std::shared_ptr<PackedWeights> PackedWeights::make(const WeightLayout& layout,
                                                   Tensor tensor) {
  return std::make_shared<OneDnnWeights>(layout, std::move(tensor));
}

}  // namespace tagflow::devices
