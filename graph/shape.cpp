#include "graph/shape.h"

#include <fmt/ranges.h>

namespace tagflow {

std::optional<int64_t> checked_multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return {};
  return product;
}

Result<Shape> Shape::make(std::span<const int64_t> dims) {
  if (dims.size() > size_t(kMaxRank))
    return invalid_argument("[shape] rank {} is over the limit of {}",
                            dims.size(), kMaxRank);
  int64_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return invalid_argument("[shape] negative dimension {} in [{}]", dim,
                              fmt::join(dims, ","));
    empty = empty || dim == 0;
    auto product = checked_multiply(count, dim == 0 ? 1 : dim);
    overflow = overflow || !product;
    count = product.value_or(1);
  }
  if (overflow && !empty)
    return invalid_argument("[shape] the number of elements of [{}] overflows",
                            fmt::join(dims, ","));
  return Shape(dims);
}

void Shape::insert_dim(int at, int64_t value) {
  dims_.insert(dims_.begin() + at, value);
}

void Shape::remove_dim(int at) { dims_.erase(dims_.begin() + at); }

int64_t Shape::num_elements() const {
  // Unsigned: partial products of an empty shape may overflow.
  uint64_t count = 1;
  for (int64_t dim : dims_) count *= uint64_t(dim);
  return int64_t(count);
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims_, ","));
}

PartialShape PartialShape::of_rank(int rank) {
  PartialShape shape(std::initializer_list<int64_t>{});
  shape.dims_->resize(size_t(rank), kUnknown);
  return shape;
}

Result<PartialShape> PartialShape::make(std::span<const int64_t> dims) {
  if (dims.size() > size_t(kMaxRank))
    return invalid_argument("[shape] rank {} is over the limit of {}",
                            dims.size(), kMaxRank);
  for (int64_t dim : dims)
    if (dim < kUnknown)
      return invalid_argument("[shape] negative dimension {} in [{}]", dim,
                              fmt::join(dims, ","));
  return PartialShape(dims);
}

bool PartialShape::fully_known() const {
  if (!dims_) return false;
  for (int64_t dim : *dims_)
    if (dim == kUnknown) return false;
  return true;
}

std::optional<Shape> PartialShape::to_shape() const {
  if (!fully_known()) return {};
  return Shape(dims());
}

int64_t PartialShape::num_elements() const {
  if (!fully_known()) return kUnknown;
  int64_t count = 1;
  for (int64_t dim : *dims_) {
    if (dim == 0) return 0;
    auto product = checked_multiply(count, dim);
    if (!product) return kUnknown;
    count = *product;
  }
  return count;
}

bool PartialShape::compatible(const PartialShape& other) const {
  return merge(other).ok();
}

bool PartialShape::accepts(const Shape& shape) const {
  if (!dims_) return true;
  if (rank() != shape.rank()) return false;
  for (int i = 0; i < rank(); ++i)
    if (dim_known(i) && dim(i) != shape.dim(i)) return false;
  return true;
}

Result<PartialShape> PartialShape::merge(const PartialShape& other) const {
  if (!dims_) return other;
  if (!other.dims_) return *this;
  if (rank() != other.rank())
    return invalid_argument("shapes {} and {} have different ranks",
                            to_string(), other.to_string());
  PartialShape merged = *this;
  for (int i = 0; i < rank(); ++i) {
    if (!merged.dim_known(i)) {
      merged.set_dim(i, other.dim(i));
    } else if (other.dim_known(i) && other.dim(i) != dim(i)) {
      return invalid_argument("shapes {} and {} differ in dimension {}",
                              to_string(), other.to_string(), i);
    }
  }
  return merged;
}

PartialShape PartialShape::relax(const PartialShape& other) const {
  if (!dims_ || !other.dims_ || rank() != other.rank()) return PartialShape();
  PartialShape relaxed = *this;
  for (int i = 0; i < rank(); ++i)
    if (dim(i) != other.dim(i)) relaxed.set_dim(i, kUnknown);
  return relaxed;
}

std::string PartialShape::to_string() const {
  if (!dims_) return "<unknown>";
  std::string text = "[";
  for (int i = 0; i < rank(); ++i) {
    if (i > 0) text += ",";
    text += dim_known(i) ? std::to_string(dim(i)) : "?";
  }
  return text + "]";
}

}  // namespace tagflow
