// Ops that use files if an attribute says so. Internal.
#pragma once

#include <string_view>

#include "graph/attr.h"

namespace tagflow::graph {

// For a FileUse: whether the attribute is a text that `says_so`, or may become
// one, since it is a placeholder. False without the attribute.
bool may_say(const AttrMap& attrs, std::string_view name,
             bool (*says_so)(std::string_view text));

}  // namespace tagflow::graph
