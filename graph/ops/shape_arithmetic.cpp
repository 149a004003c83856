#include "graph/ops/shape_arithmetic.h"

#include "graph/ops/index_values.h"

namespace tagflow::graph {

std::optional<int64_t> constant_index(const ShapeContext& c, int input) {
  const Tensor* tensor = c.constant(input);
  if (tensor == nullptr || tensor->num_elements() != 1) return {};
  return index_at(*tensor, 0);
}

std::optional<Shape::Dims> constant_indices(const ShapeContext& c, int input) {
  const Tensor* tensor = c.constant(input);
  if (tensor == nullptr) return {};
  return index_elements(*tensor);
}

Result<int> shape_axis(const ShapeContext& c, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return c.fail(
        fmt::format("axis {} is outside [{}, {})", axis, -rank, rank));
  return int(axis < 0 ? axis + rank : axis);
}

int64_t add_dims(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
    return PartialShape::kUnknown;
  return sum;
}

int64_t multiply_dims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return checked_multiply(a, b).value_or(PartialShape::kUnknown);
}

PartialShape sub_shape(const PartialShape& shape, int begin, int end) {
  return PartialShape(shape.dims().subspan(size_t(begin), size_t(end - begin)));
}

PartialShape concatenate(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return {};
  PartialShape result = a;
  for (int64_t dim : b.dims()) result.add_dim(dim);
  return result;
}

}  // namespace tagflow::graph
