// Estimated costs of nodes, by the Work of their ops.
#pragma once

#include "graph/placement/cost_model.h"

namespace tagflow::graph {

// Whether it puts values into a list, stack or array, takes them out, or makes
// it: it is placed where the values are, regardless of its cost.
bool only_holds(const Node& node);

// The number of elements; unknown dimensions are assumed (Note [Costs]).
double assumed_elements(const PartialShape& shape);

// The number of arithmetic operations of a node that reads and writes so many
// bytes; it may correct the number of bytes.
double estimate_flops(const Node& node, double output_bytes, double& bytes);

}  // namespace tagflow::graph
