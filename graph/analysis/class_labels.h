// The attribute `_class` of nodes: with which nodes they must be.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/node.h"

namespace tagflow::graph {

inline constexpr std::string_view kClassAttr = "_class";
inline constexpr std::string_view kClassPrefix = "loc:@";

// Its labels; none if the node has no such attribute. Labels that begin with
// kClassPrefix name a node, which need not exist: all nodes with the same label
// are together. Other labels do not affect devices. InvalidArgument if the
// attribute is not a list of strings, or a name is empty. Valid until the node
// is changed.
Result<std::span<const std::string>> class_labels(const Node& node);

}  // namespace tagflow::graph
