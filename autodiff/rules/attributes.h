// Attributes that a node's gradient shares with the node.
#pragma once

#include <span>
#include <string_view>

#include "graph/node.h"

namespace tagflow::autodiff {

// Those of these names that the node has.
inline AttrMap copied_attrs(const graph::Node& node,
                            std::span<const std::string_view> names) {
  AttrMap attrs;
  for (const std::string_view name : names)
    if (const auto found = node.attrs().find(name); found != node.attrs().end())
      attrs.emplace(name, found->second);
  return attrs;
}

}  // namespace tagflow::autodiff
