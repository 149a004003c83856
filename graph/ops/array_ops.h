// Private to graph/ops/array*.cpp: registration of array ops by theme, and
// helpers of their shape functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void register_array_basic_ops(OpRegistry& registry);    // shapes, fills
void register_array_join_ops(OpRegistry& registry);     // concat, split, pack
void register_array_slice_ops(OpRegistry& registry);    // slices
void register_array_gather_ops(OpRegistry& registry);   // gather, scatter
void register_array_layout_ops(OpRegistry& registry);   // transpose, pad, ...
void register_array_diag_ops(OpRegistry& registry);     // matrix diagonals
void register_array_indices_ops(OpRegistry& registry);  // one-hot, where
void register_array_update_ops(OpRegistry& registry);   // rows in place

// Adds an op, given OpDefBuilder's texts for inputs, outputs and attributes,
// and further properties.
using Texts = std::initializer_list<std::string_view>;
void define(OpRegistry& registry, std::string name, Texts inputs, Texts outputs,
            Texts attrs, ShapeFn shape_fn, Work work = Work::kElementwise);

// The part of a shape selected by begin, end and strides, inputs 1 to 3.
Result<PartialShape> sliced_shape(const ShapeContext& c,
                                  const PartialShape& input);

}  // namespace tagflow::graph
