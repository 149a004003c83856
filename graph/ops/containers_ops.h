// Private to graph/ops/containers*.cpp: registration by theme, and a helper of
// their shape functions.
#pragma once

#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

void register_containers_stack_ops(OpRegistry& registry);
void register_containers_tensor_array_ops(OpRegistry& registry);
void register_containers_tensor_list_ops(OpRegistry& registry);
void register_containers_tensor_map_ops(OpRegistry& registry);
void register_containers_optional_ops(OpRegistry& registry);

// The shape of elements given by input i: a vector of dimensions, or -1.
Result<PartialShape> element_shape_input(const ShapeContext& c, int i);

}  // namespace tagflow::graph
