// What shape functions of several families compute with: values of constant
// inputs, axes, dimensions and parts of shapes.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/shape_context.h"

namespace tagflow::graph {

inline constexpr int64_t kUnknown = PartialShape::kUnknown;

// The value of a constant integer input with one element.
std::optional<int64_t> constant_index(const ShapeContext& c, int input);
// The values of a constant integer input.
std::optional<Shape::Dims> constant_indices(const ShapeContext& c, int input);

// The axis in [0, rank); a negative one counts from the end. InvalidArgument if
// it is outside [-rank, rank).
Result<int> shape_axis(const ShapeContext& c, int64_t axis, int rank);

// Sums, products and quotients of dimensions; unknown if an operand is, or if
// the result overflows.
int64_t add_dims(int64_t a, int64_t b);
int64_t multiply_dims(int64_t a, int64_t b);

// Dimensions [begin, end) of a shape of known rank. REQUIRES: in range.
PartialShape sub_shape(const PartialShape& shape, int begin, int end);
// The dimensions of `a`, then those of `b`; of unknown rank if one of them is.
PartialShape concatenate(const PartialShape& a, const PartialShape& b);

}  // namespace tagflow::graph
