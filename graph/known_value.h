// Values of tensors that are known before the graph runs.
#pragma once

#include <functional>
#include <string_view>

#include "graph/node.h"

namespace tagflow::graph {

// The value of a Const, also through Identity and constant Enters; null if it
// is not known.
const Tensor* known_constant(Endpoint source);
// The value of a Const if edges will be redirected: readers of an endpoint will
// read end(endpoint) instead.
const Tensor* known_constant(
    Endpoint source, const std::function<Endpoint(const Endpoint&)>& end);

// The value of an integer tensor as a shape; -1 is an unknown dimension. The
// tensor is a vector, a scalar -1 (an unknown rank) or another scalar (one
// dimension). Evaluates Shape, ShapeN, Pack, Concat, ConcatV2, StridedSlice and
// Cast. If only the vector's length is known, only the rank is; if nothing is
// known, the rank is unknown. InvalidArgument if the value cannot be a shape.
Result<PartialShape> known_shape(Endpoint source);

// Attribute of a Const (true) whose value the gradients of the graph were made
// by, such as an axis. It cannot be fed, which would leave them wrong.
inline constexpr std::string_view kFixedValueAttr = "_fixed_value";

// The node that makes the value, behind Identities and loop constants; null for
// an open back edge.
const Node* known_maker(Endpoint source);

}  // namespace tagflow::graph
