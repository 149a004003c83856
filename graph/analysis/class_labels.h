// What a node's attribute `_class` says: with which nodes it must be.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace tagflow::graph {

inline constexpr std::string_view kClassAttr = "_class";
inline constexpr std::string_view kClassPrefix = "loc:@";

// Its labels; none where the node has no such attribute. Those that begin with
// kClassPrefix name a node. There need not be one of that name; whoever lists
// the same label is together all the same. Other labels say nothing of devices.
// InvalidArgument where the attribute is no list of strings, or a name is
// empty. Valid until the node is changed.
Result<std::span<const std::string>> class_labels(const Node& node);

}  // namespace tagflow::graph
