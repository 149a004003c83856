// Private to the ops of arrays and of variables: shapes of what slices and
// index vectors select.
#pragma once

#include "graph/shape_context.h"

namespace tagflow::graph {

// The part of a shape selected by begin, end and strides, inputs 1 to 3.
Result<PartialShape> sliced_shape(const ShapeContext& c,
                                  const PartialShape& input);

// The shape of the gathered slices. Each vector along the last dimension of
// input 1, indices, selects a slice of params, so that the shape is
// indices.shape[:-1] + params.shape[depth:].
Result<PartialShape> gathered_slices(const ShapeContext& c,
                                     const PartialShape& params);

// InvalidArgument unless the updates can have the shape of the slices of
// `output`.
Status check_slice_updates(const ShapeContext& c, const PartialShape& output,
                           const PartialShape& indices,
                           const PartialShape& updates);

}  // namespace tagflow::graph
