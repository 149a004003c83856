// Private to graph/ops/array*.cpp: registration of array ops by theme, and
// helpers of their shape functions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "graph/op_registry.h"
#include "graph/ops/index_values.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void register_array_basic_ops(OpRegistry& registry);   // shapes, fills
void register_array_join_ops(OpRegistry& registry);    // concat, split, pack
void register_array_slice_ops(OpRegistry& registry);   // slices
void register_array_gather_ops(OpRegistry& registry);  // gather, scatter
void register_array_layout_ops(OpRegistry& registry);  // transpose, pad, ...
void register_array_diag_ops(OpRegistry& registry);    // matrix diagonals
void register_array_update_ops(OpRegistry& registry);  // rows in place, buckets

// Adds an op, given OpDefBuilder's texts for inputs, outputs and attributes,
// and further properties.
using Texts = std::initializer_list<std::string_view>;
void define(OpRegistry& registry, std::string name, Texts inputs, Texts outputs,
            Texts attrs, ShapeFn shape_fn, Work work = Work::kElementwise);

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
// The part of a shape selected by begin, end and strides, inputs 1 to 3.
Result<PartialShape> sliced_shape(const ShapeContext& c,
                                  const PartialShape& input);
// The dimensions of `a`, then those of `b`; of unknown rank if one of them is.
PartialShape concatenate(const PartialShape& a, const PartialShape& b);

}  // namespace tagflow::graph
