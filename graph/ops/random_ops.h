// Private to graph/ops/random*.cpp.
#pragma once

#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void register_stateless_random_ops(OpRegistry& registry);

// Output 0 has the shape that input 0 is the vector of.
Status filled_shape(ShapeContext& c);
// Output 0 has as many rows as input 0, logits, and input 1 says how many
// columns.
Status multinomial_shape(ShapeContext& c);
// The inputs from `first` on are scalars.
Status scalars_from(const ShapeContext& c, int first);

}  // namespace tagflow::graph
