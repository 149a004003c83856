// Nodes that stand for other ones, in copies of a graph.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace tagflow::autodiff {

// Attributes of an IdentityN of outputs and inputs of another node, which
// stands for that in a copy (Note [Recomputation] in autodiff/recomputation.h):
// its op, and how many outputs it has. Its attributes are there with a '_' in
// front.
inline constexpr std::string_view kStandsForAttr = "_stands_for";
inline constexpr std::string_view kStandInOutputsAttr = "_stand_in_outputs";

// Of such a node, how many of its inputs are outputs of what it stands for; 0
// of any other. InvalidArgument where it cannot stand for that, as a file may
// say anything.
Result<size_t> stand_in_outputs(const graph::Node& node);

}  // namespace tagflow::autodiff
