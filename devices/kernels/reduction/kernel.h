// The kernel of all reductions along dimensions.
#pragma once

#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/loops.h"

namespace tagflow::devices {

// A kernel that reduces input 0 along the dimensions that input 1 lists.
// `loops` is of static storage. `is_identity`: whether the reduction of one
// element is that element.
void add_reduction(KernelRegistry& registry, const char* op,
                   const TypeLimits& types, const ReductionLoops* loops,
                   bool is_identity);

// Op: see reduction/loops.h.
template <class Op>
void add_reduction(KernelRegistry& registry, const char* op,
                   const TypeLimits& types = {}) {
  add_reduction(registry, op, types, &kReductionLoops<Op>, Op::kIdentity);
}

}  // namespace tagflow::devices
