// Private to the ops of arrays and of state: the shapes of what is gathered,
// or scattered, by index vectors.
#pragma once

#include "graph/shape_context.h"

namespace tagflow::graph {

// What each vector along the last dimension of input 1, indices, picks of
// params: indices.shape[:-1] + params.shape[depth:].
Result<PartialShape> gathered_slices(const ShapeContext& c,
                                     const PartialShape& params);

// InvalidArgument unless the updates may be of that shape for slices of
// `output`.
Status check_slice_updates(const ShapeContext& c, const PartialShape& output,
                           const PartialShape& indices,
                           const PartialShape& updates);

}  // namespace tagflow::graph
