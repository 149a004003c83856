// What nodes are thought to take, by the Work of their ops.
#pragma once

#include "graph/placement/cost_model.h"

namespace tagflow::graph {

// Puts values into a list, stack or array, or takes them out, or makes it: what
// is to be where the values are, however long it takes.
bool only_holds(const Node& node);

// Runs a function in frames of its own.
inline bool is_call(const Node& node) { return node.op() == "_Call"; }

// Of a shape; what is unknown is assumed (Note [Costs]).
double assumed_elements(const PartialShape& shape);

// Arithmetic operations of a node that reads and writes so many bytes, of
// which it may correct the number.
double estimate_flops(const Node& node, double output_bytes, double& bytes);

}  // namespace tagflow::graph
