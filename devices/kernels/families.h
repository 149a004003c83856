// The built-in kernels, family by family.
#pragma once

#include <span>

#include "devices/kernel_registry.h"
#include "graph/family.h"

namespace tagflow::devices {

// The families whose kernels this build has, lower ones first. CMake makes the
// table from cmake/families.txt; with TAGFLOW_KERNELS=basic it has the basic
// families only.
std::span<const Family<KernelRegistry>> kernel_families();
// Whether this build has the kernels of the basic families only.
bool has_basic_families_only();

}  // namespace tagflow::devices
