// Private to the ops of stacks, tensor arrays, tensor lists and optionals, and
// of their gradients: registration by theme, and helpers of their shape
// functions.
#pragma once

#include "graph/ops/array_ops.h"

namespace tagflow::graph {

void register_containers_stack_ops(OpRegistry& registry);
void register_containers_tensor_array_ops(OpRegistry& registry);
void register_containers_tensor_list_ops(OpRegistry& registry);
void register_containers_tensor_map_ops(OpRegistry& registry);
void register_containers_optional_ops(OpRegistry& registry);

// define() for a stateful op, which is never merged, folded or run twice.
void define_stateful(OpRegistry& registry, std::string name, Texts inputs,
                     Texts outputs, Texts attrs, ShapeFn shape_fn,
                     Work work = Work::kElementwise);

// define() for an op that changes its first input: OpDef::changed_input.
void define_changing(OpRegistry& registry, std::string name, Texts inputs,
                     Texts outputs, Texts attrs, ShapeFn shape_fn,
                     Work work = Work::kElementwise);

// The shape of elements given by input i: a vector of dimensions, or -1.
Result<PartialShape> element_shape_input(const ShapeContext& c, int i);

}  // namespace tagflow::graph
