// Shapes: Shape is that of a tensor, PartialShape is what is known about it
// before the tensor exists.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "graph/status.h"

namespace tagflow {

inline constexpr int kMaxRank = 254;

// The dimensions of a tensor, outermost first; rank 0 is a scalar. A value
// type; every dimension is >= 0 and the number of elements fits in int64_t.
class Shape {
 public:
  using Dims = boost::container::small_vector<int64_t, 6>;

  Shape() = default;
  // REQUIRES: the checks of make(). For dimensions the program chose itself.
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {}
  // InvalidArgument on a negative dimension, a rank over kMaxRank, or a
  // number of elements that overflows. For dimensions from outside.
  static Result<Shape> make(std::span<const int64_t> dims);

  int rank() const { return int(dims_.size()); }
  // REQUIRES: 0 <= i < rank()
  int64_t dim(int i) const { return dims_[size_t(i)]; }
  void set_dim(int i, int64_t value) { dims_[size_t(i)] = value; }
  void add_dim(int64_t value) { dims_.push_back(value); }
  void insert_dim(int at, int64_t value);
  void remove_dim(int at);
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  // The product of the dimensions; 1 for a scalar.
  int64_t num_elements() const;
  // "[2,3]"; "[]" for a scalar.
  std::string to_string() const;
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }

 private:
  Dims dims_;
};

// A shape whose rank, or some of whose dimensions, may be unknown.
class PartialShape {
 public:
  static constexpr int64_t kUnknown = -1;

  // Of unknown rank.
  PartialShape() = default;
  // Dimensions >= 0, or kUnknown.
  PartialShape(std::initializer_list<int64_t> dims)
      : dims_(Shape::Dims(dims)) {}
  explicit PartialShape(std::span<const int64_t> dims)
      : dims_(Shape::Dims(dims.begin(), dims.end())) {}
  PartialShape(const Shape& shape) : PartialShape(shape.dims()) {}
  // Of known rank, all dimensions unknown. REQUIRES: rank >= 0
  static PartialShape of_rank(int rank);
  static PartialShape scalar() { return of_rank(0); }
  // InvalidArgument on a dimension < -1 or a rank over kMaxRank.
  static Result<PartialShape> make(std::span<const int64_t> dims);

  bool has_rank() const { return dims_.has_value(); }
  // REQUIRES: has_rank(), as for dim(), dims() and set_dim().
  int rank() const { return int(dims_->size()); }
  int64_t dim(int i) const { return (*dims_)[size_t(i)]; }
  bool dim_known(int i) const { return dim(i) != kUnknown; }
  void set_dim(int i, int64_t value) { (*dims_)[size_t(i)] = value; }
  void add_dim(int64_t value) { dims_->push_back(value); }
  std::span<const int64_t> dims() const {
    return {dims_->data(), dims_->size()};
  }
  bool fully_known() const;
  // The shape if it is fully_known(), otherwise nothing. Dimensions from a
  // graph may be invalid for a Shape: Shape::make(dims()) checks them.
  std::optional<Shape> to_shape() const;
  // The product of the dimensions, or kUnknown (also if it overflows).
  int64_t num_elements() const;
  // Whether a tensor could have both shapes.
  bool compatible(const PartialShape& other) const;
  // Whether a tensor may have that shape.
  bool accepts(const Shape& shape) const;
  // Combines both; InvalidArgument if they contradict each other.
  Result<PartialShape> merge(const PartialShape& other) const;
  // Keeps what both agree on: differing dimensions and ranks become unknown.
  PartialShape relax(const PartialShape& other) const;
  // "[2,?]", "<unknown>".
  std::string to_string() const;
  bool operator==(const PartialShape& other) const = default;

 private:
  std::optional<Shape::Dims> dims_;
};

// a * b, or nothing if it overflows int64_t or a factor is negative.
std::optional<int64_t> checked_multiply(int64_t a, int64_t b);

}  // namespace tagflow
