// Definitions of the built-in ops, family by family.
#pragma once

#include <span>

#include "graph/family.h"
#include "graph/op_registry.h"

namespace tagflow::graph {

// The families, lower ones first. CMake makes the table from
// cmake/families.txt.
std::span<const Family<OpRegistry>> op_families();

}  // namespace tagflow::graph
