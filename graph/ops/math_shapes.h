// Shape functions of element-wise ops.
#pragma once

#include "graph/shape_context.h"

namespace tagflow::graph {

// Inputs of one shape, which is the output's: nothing is broadcast.
Status same_shape(ShapeContext& c);
// The same of a sum. Of variants an empty one, a scalar, is a zero of any
// shape.
Status sum_shape(ShapeContext& c);
// Equal, NotEqual: may compare what cannot be broadcast, to one bool.
Status equality_shape(ShapeContext& c);
// Select: the condition is like the values, a scalar, or a vector of rows.
Status select_shape(ShapeContext& c);
// SelectV2: the three inputs are broadcast together.
Status select_v2_shape(ShapeContext& c);
// ClipByValue: the limits are scalars or like the value.
Status clip_shape(ShapeContext& c);
// Bitcast: the last dimension appears, vanishes or stays.
Status bitcast_shape(ShapeContext& c);
// BroadcastTo: input 1 is the shape.
Status broadcast_to_shape(ShapeContext& c);
// BroadcastGradientArgs: two vectors in, two vectors out.
Status broadcast_gradient_args_shape(ShapeContext& c);

}  // namespace tagflow::graph
