// Shape functions of element-wise ops.
#pragma once

#include "graph/shape_context.h"

namespace tagflow::graph {

// All inputs have the shape of the output: no broadcasting.
Status same_shape(ShapeContext& c);
// As same_shape(), for sums. An empty variant, a scalar, is a zero of any
// shape.
Status sum_shape(ShapeContext& c);
// Equal, NotEqual: shapes that cannot be broadcast may give one bool.
Status equality_shape(ShapeContext& c);
// Select: the condition has the values' shape, or is a scalar, or a vector with
// one element per row.
Status select_shape(ShapeContext& c);
// SelectV2: the three inputs are broadcast together.
Status select_v2_shape(ShapeContext& c);
// ClipByValue: the limits are scalars or have the value's shape.
Status clip_shape(ShapeContext& c);
// Bitcast: adds or removes a last dimension, or keeps the shape.
Status bitcast_shape(ShapeContext& c);
// BroadcastTo: input 1 is the shape.
Status broadcast_to_shape(ShapeContext& c);
// BroadcastGradientArgs: two vectors in, two vectors out.
Status broadcast_gradient_args_shape(ShapeContext& c);

}  // namespace tagflow::graph
