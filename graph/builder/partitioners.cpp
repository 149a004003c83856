#include "graph/builder/partitioners.h"

#include <algorithm>
#include <cmath>

namespace tagflow::graph::partitioners {

namespace {

Status check_axis(const char* what, const Shape& shape, int axis) {
  if (axis >= 0 && axis < shape.rank()) return {};
  return invalid_argument(
      "[partitioners] {}: a variable of shape {} has no dimension {}", what,
      shape.to_string(), axis);
}

Status check_positive(const char* what, const char* name, int64_t value) {
  if (value > 0) return {};
  return invalid_argument("[partitioners] {}: {} must be positive, not {}",
                          what, name, value);
}

std::vector<int64_t> along(const Shape& shape, int axis, int64_t parts) {
  std::vector<int64_t> all(size_t(shape.rank()), 1);
  all[size_t(axis)] = std::max<int64_t>(1, parts);
  return all;
}

int64_t element_bytes(DataType dtype, int64_t bytes_per_string) {
  return dtype == DataType::kString ? bytes_per_string
                                    : int64_t(dtype_size(dtype));
}

// The size in bytes, as a double, to avoid overflow for shapes that a caller
// chose.
double bytes_of(const Shape& shape, int64_t element) {
  return double(shape.num_elements()) * double(element);
}

}  // namespace

Partitioner fixed_size(int64_t parts, int axis) {
  return [=](const Shape& shape, DataType) -> Result<std::vector<int64_t>> {
    TAGFLOW_RETURN_IF_ERROR(check_axis("fixed_size", shape, axis));
    TAGFLOW_RETURN_IF_ERROR(
        check_positive("fixed_size", "the number of parts", parts));
    return along(shape, axis, std::min(parts, shape.dim(axis)));
  };
}

Partitioner max_bytes(MaxBytes o) {
  return [=](const Shape& shape,
             DataType dtype) -> Result<std::vector<int64_t>> {
    TAGFLOW_RETURN_IF_ERROR(check_axis("max_bytes", shape, o.axis));
    TAGFLOW_RETURN_IF_ERROR(check_positive("max_bytes", "bytes", o.bytes));
    TAGFLOW_RETURN_IF_ERROR(
        check_positive("max_bytes", "bytes_per_string", o.bytes_per_string));
    if (o.max_parts < 0)
      return invalid_argument(
          "[partitioners] max_bytes: max_parts must not be negative, but is {}",
          o.max_parts);
    const int64_t rows = shape.dim(o.axis);
    if (rows == 0) return along(shape, o.axis, 1);
    const double row_bytes =
        bytes_of(shape, element_bytes(dtype, o.bytes_per_string)) /
        double(rows);
    const double fitting =
        row_bytes == 0 ? double(rows) : double(o.bytes) / row_bytes;
    const int64_t rows_per_part =
        std::clamp<int64_t>(int64_t(std::min(fitting, double(rows))), 1, rows);
    int64_t parts = (rows - 1) / rows_per_part + 1;
    if (o.max_parts > 0) parts = std::min(parts, o.max_parts);
    return along(shape, o.axis, parts);
  };
}

Partitioner max_parts(MaxParts o) {
  return [=](const Shape& shape,
             DataType dtype) -> Result<std::vector<int64_t>> {
    TAGFLOW_RETURN_IF_ERROR(check_axis("max_parts", shape, o.axis));
    TAGFLOW_RETURN_IF_ERROR(check_positive("max_parts", "parts", o.parts));
    TAGFLOW_RETURN_IF_ERROR(
        check_positive("max_parts", "min_bytes", o.min_bytes));
    TAGFLOW_RETURN_IF_ERROR(
        check_positive("max_parts", "bytes_per_string", o.bytes_per_string));
    const double fitting =
        std::ceil(bytes_of(shape, element_bytes(dtype, o.bytes_per_string)) /
                  double(o.min_bytes));
    const int64_t most = std::min(o.parts, shape.dim(o.axis));
    return along(shape, o.axis,
                 fitting < double(most) ? int64_t(fitting) : most);
  };
}

}  // namespace tagflow::graph::partitioners
