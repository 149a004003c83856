// Private to the ops of state: registration by theme, and helpers of their
// shape functions.
#pragma once

#include "graph/ops/container_ops.h"

namespace tagflow::graph {

void register_variable_ops(OpRegistry& registry);  // state_variable.cpp
void register_scatter_ops(OpRegistry& registry);   // state_scatter.cpp
void register_training_ops(OpRegistry& registry);  // state_training.cpp
void register_queue_ops(OpRegistry& registry);     // state_queue.cpp
void register_table_ops(OpRegistry& registry);     // state_table.cpp
void register_staging_ops(OpRegistry& registry);   // state_staging.cpp
// state_accumulator.cpp
void register_accumulator_ops(OpRegistry& registry);
void register_barrier_ops(OpRegistry& registry);
void register_session_ops(OpRegistry& registry);  // state_session.cpp

// For an op that returns a reference to a handle: a vector of two strings.
Status handle_reference_shape(ShapeContext& c);

// The shape of the variable of a resource input, if the node that made the
// handle is known; otherwise of unknown rank.
PartialShape variable_shape(const ShapeContext& c, int input);
// The same for an input that is a resource or a reference.
PartialShape state_shape(const ShapeContext& c, int input);

}  // namespace tagflow::graph
