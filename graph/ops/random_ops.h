// Private to graph/ops/random*.cpp.
#pragma once

#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void register_random_stateless_ops(OpRegistry& registry);

// The shape of output 0 is the value of input 0.
Status filled_shape(ShapeContext& c);
// Output 0 has the rows of input 0, logits; input 1 gives the columns.
Status multinomial_shape(ShapeContext& c);
// The inputs from `first` on are scalars.
Status scalars_from(const ShapeContext& c, int first);

}  // namespace tagflow::graph
