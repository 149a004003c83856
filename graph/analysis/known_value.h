// What is known of a tensor's value before the graph runs.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace tagflow::graph {

// The value of a Const, also seen through Identity and constant Enters; null
// where it is not known.
const Tensor* known_constant(Endpoint source);
// The same where edges are about to be led elsewhere: what reads an endpoint
// reads end(endpoint) instead.
const Tensor* known_constant(
    Endpoint source, const std::function<Endpoint(const Endpoint&)>& end);

// The value of an integer tensor taken as a shape, -1 being an unknown
// dimension. A vector, a scalar -1 (an unknown rank) or another scalar (one
// dimension). Computes Shape, ShapeN, Pack, Concat, ConcatV2, StridedSlice and
// Cast. Of unknown rank where nothing is known; only of known rank where no
// more than the vector's length is. InvalidArgument where the value cannot be
// a shape.
Result<PartialShape> known_shape(Endpoint source);

// The node that makes what comes there, past Identities and loop constants;
// null for an open back edge.
const Node* known_maker(Endpoint source);

}  // namespace tagflow::graph
