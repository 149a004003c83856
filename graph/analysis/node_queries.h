// What analyses and passes ask about a node.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/node.h"

namespace tagflow::graph {

// Computing the node twice, elsewhere or not at all only affects run time: its
// op is registered, has outputs, and is not stateful or control flow; it is not
// a source of tokens, and has no reference or resource.
bool is_pure(const Node& node);

// Whether an input is a reference, whose value may change meanwhile.
bool reads_reference(const Node& node);

// Whether it returns its only input unchanged: an Identity of any op name,
// without control inputs, and not the reader of a reference.
bool is_plain_identity(const Node& node);

// A pure node of a fusible op: OpDefBuilder::fusible().
bool is_elementwise(const Node& node);

// Whether all inputs have the same shape, which is fully known.
bool has_one_known_shape(const Node& node);

// Whether it runs a function in frames of its own.
inline bool is_call(const Node& node) { return node.op() == "_Call"; }

// Whether the bool attribute exists and is true.
bool is_set(const Node& node, std::string_view flag);

// Whether the axis is a known scalar, and is the last one of that rank.
bool is_last_axis(const Endpoint& axis, int rank);

// Whether it is an Enter of a loop constant without control inputs.
bool is_loop_constant(const Node& node);

// Whether a control edge from the node of `source` is dead exactly if `source`
// is: false for an output of a Switch, or of a call.
bool control_tells_deadness(const Endpoint& source);

// Whether its tokens may be dead for reasons that the graph does not show, so
// that liveness of its readers is unknown: a _Recv, or a call.
bool hides_deadness(const Node& node);

// The labels of its attribute `_class`: see class_labels.h. None if it is
// malformed, which a graph that is compiled does not have.
std::span<const std::string> classes_of(const Node& node);

// Whether the nodes have the same placement constraints: Note [Constraints and
// passes].
bool has_same_constraints(const Node& a, const Node& b);
// Whether the node has no placement constraint.
bool is_unconstrained(const Node& node);

}  // namespace tagflow::graph
