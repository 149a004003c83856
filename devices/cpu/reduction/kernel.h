// The kernel of all reductions along dimensions, and the parts of
// register_reduction_kernels(), one per file.
#pragma once

#include "devices/cpu/reduction/loops.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

// Reduces elements of one type.
using ReduceFn = void (*)(const KernelContext& context,
                          const ReductionPlan& plan, const void* in, void* out);

template <class Op>
void reduce_elements(const KernelContext& context, const ReductionPlan& plan,
                     const void* in, void* out) {
  reduce<Op>(context, plan, static_cast<const typename Op::In*>(in),
             static_cast<typename Op::Out*>(out));
}

// A kernel that reduces input 0 along the dimensions that input 1 lists.
// `is_identity`: whether the reduction of one element is that element. Not a
// template, so that only the loops are compiled for each type.
void add_reduction(KernelRegistry& registry, const char* op,
                   const TypeLimits& types, ReduceFn reduce, bool is_identity);

// Op: see reduction/loops.h.
template <class Op>
void add_reduction(KernelRegistry& registry, const char* op,
                   const TypeLimits& types = {}) {
  add_reduction(registry, op, types, &reduce_elements<Op>, Op::kIdentity);
}

void register_reduction_sum_kernels(KernelRegistry& registry);
void register_reduction_product_kernels(KernelRegistry& registry);
void register_reduction_extreme_kernels(KernelRegistry& registry);
void register_arg_reduction_kernels(KernelRegistry& registry);
void register_logsumexp_kernels(KernelRegistry& registry);
void register_sorted_segment_kernels(KernelRegistry& registry);
void register_unsorted_segment_kernels(KernelRegistry& registry);
void register_sparse_segment_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
