// Nodes that stand for other nodes in copies of a graph.
#pragma once

#include <string_view>

#include "graph/node.h"

namespace tagflow::autodiff {

// Attributes of an IdentityN that stands for another node in a copy (Note
// [Recomputation] in autodiff/recomputation.h), and reads that node's outputs
// and inputs. They hold the op and the number of outputs of that node; its
// attributes are there with the prefix '_'.
inline constexpr std::string_view kStandsForAttr = "_stands_for";
inline constexpr std::string_view kStandInOutputsAttr = "_stand_in_outputs";

// How many inputs of such a node are outputs of the node that it stands for; 0
// for any other node. Returns InvalidArgument if the attributes, which may
// come from a file, are invalid.
Result<size_t> stand_in_outputs(const graph::Node& node);

}  // namespace tagflow::autodiff
