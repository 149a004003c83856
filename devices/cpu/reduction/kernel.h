// The kernel of all reductions along dimensions, and the parts of
// register_reduction_kernels(), one per file.
#pragma once

#include <memory>

#include "devices/cpu/reduction/loops.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

// Reduces input 0 along the dimensions that input 1 lists. Op: see
// reduction/loops.h.
template <class Op>
class ReductionKernel : public Kernel {
 public:
  explicit ReductionKernel(bool keep_dims) : keep_dims_(keep_dims) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const bool keep_dims, info.attr<bool>("keep_dims"));
    return std::unique_ptr<Kernel>(
        std::make_unique<ReductionKernel>(keep_dims));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(
        const ReductionPlan plan,
        plan_reduction(context, input, context.input(1), keep_dims_));
    if (Op::kIdentity && plan.reduced_count == 1) {
      TAGFLOW_ASSIGN(Tensor same, input.reshaped(plan.output_shape));
      context.set_output(0, std::move(same));
      return Status();
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, plan.output_shape));
    reduce<Op>(context, plan, static_cast<const typename Op::In*>(input.raw()),
               static_cast<typename Op::Out*>(out->mutable_raw()));
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.2;
  }

 private:
  bool keep_dims_;
};

void register_reduction_sum_kernels(KernelRegistry& registry);
void register_reduction_product_kernels(KernelRegistry& registry);
void register_reduction_extreme_kernels(KernelRegistry& registry);
void register_arg_reduction_kernels(KernelRegistry& registry);
void register_logsumexp_kernels(KernelRegistry& registry);
void register_sorted_segment_kernels(KernelRegistry& registry);
void register_unsorted_segment_kernels(KernelRegistry& registry);
void register_sparse_segment_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
