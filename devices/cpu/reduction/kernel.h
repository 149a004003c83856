// The kernel of all reductions along dimensions, and the parts of
// register_reduction_kernels(), one per file.
#pragma once

#include "devices/cpu/reduction/loops.h"
#include "devices/kernel_registry.h"

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

void register_reduction_sum_kernels(KernelRegistry& registry);
void register_reduction_product_kernels(KernelRegistry& registry);
void register_reduction_extreme_kernels(KernelRegistry& registry);
void register_arg_reduction_kernels(KernelRegistry& registry);
void register_logsumexp_kernels(KernelRegistry& registry);
void register_unsorted_segment_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
