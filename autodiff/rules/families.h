// The rules of the built-in ops, family by family: each adds its rules, those
// of forward mode included, and why other ops have none.
#pragma once

#include <span>

#include "autodiff/rule.h"
#include "graph/family.h"

namespace tagflow::autodiff {

// The families, lower ones first. CMake makes the table from
// cmake/families.txt.
std::span<const Family<RuleTable>> rule_families();

}  // namespace tagflow::autodiff
