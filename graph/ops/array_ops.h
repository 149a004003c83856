// Private to graph/ops/array*.cpp: registration by theme.
#pragma once

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

}  // namespace tagflow::graph
