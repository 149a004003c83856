#include "autodiff/train/values.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/ops_segment.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Scope;

Output typed_value(const Scope& s, const graph::Input& value, DataType dtype,
                   std::string_view name) {
  const Output made = s.resolve(value, dtype, name);
  if (!made.has_tensor() || made.dtype() == dtype) return made;
  return ops::cast(s, made, dtype);
}

DataType sum_type(DataType dtype) {
  const bool is_short =
      dtype == DataType::kHalf || dtype == DataType::kBFloat16;
  return is_short ? DataType::kFloat : dtype;
}

Gradient with_unique_rows(const Scope& s, const Gradient& gradient) {
  if (!gradient.is_sparse()) return gradient;
  const graph::OpResult unique = s.op("Unique", {gradient.indices});
  const Output count = ops::size(s, unique[0]);
  return {ops::unsorted_segment_sum(s, gradient.values, unique[1], count),
          unique[0]};
}

Output dense_rows(const Scope& s, const Gradient& gradient, int64_t rows) {
  if (!gradient.is_sparse()) return gradient.values;
  return ops::unsorted_segment_sum(s, gradient.values, gradient.indices, rows);
}

}  // namespace tagflow::autodiff
