// Private to graph/ops/variable*.cpp: registration by theme; and helpers of
// shape functions, also for the other state that outlives a step.
#pragma once

#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void register_variable_scatter_ops(OpRegistry& registry);
void register_variable_session_ops(OpRegistry& registry);
void register_variable_checkpoint_ops(OpRegistry& registry);

// For an op that returns a reference to a handle: a vector of two strings.
Status handle_reference_shape(ShapeContext& c);

// The shape of the variable of a resource input, if the node that made the
// handle is known; otherwise of unknown rank.
PartialShape variable_shape(const ShapeContext& c, int input);
// As variable_shape(), for an input that is a resource or a reference.
PartialShape state_shape(const ShapeContext& c, int input);

}  // namespace tagflow::graph
