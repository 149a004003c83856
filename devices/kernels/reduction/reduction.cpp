#include <memory>

#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/kernel.h"

namespace tagflow::devices {
namespace {

class ReductionKernel final : public Kernel {
 public:
  ReductionKernel(const ReductionLoops* loops, bool is_identity, bool keep_dims)
      : loops_(loops), is_identity_(is_identity), keep_dims_(keep_dims) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info,
                                              const ReductionLoops* loops,
                                              bool is_identity) {
    TAGFLOW_ASSIGN(const bool keep_dims, info.attr<bool>("keep_dims"));
    return std::unique_ptr<Kernel>(
        std::make_unique<ReductionKernel>(loops, is_identity, keep_dims));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(
        const ReductionPlan plan,
        plan_reduction(context, input, context.input(1), keep_dims_));
    if (is_identity_ && plan.reduced_count == 1) {
      TAGFLOW_ASSIGN(Tensor same, input.reshaped(plan.output_shape));
      context.set_output(0, std::move(same));
      return Status();
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, plan.output_shape));
    reduce(context, plan, *loops_, input.raw(), out->mutable_raw());
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.2;
  }

 private:
  const ReductionLoops* loops_;
  bool is_identity_, keep_dims_;
};

}  // namespace

void add_reduction(KernelRegistry& registry, const char* op,
                   const TypeLimits& types, const ReductionLoops* loops,
                   bool is_identity) {
  registry.add<ReductionKernel>(op, types, loops, is_identity);
}

}  // namespace tagflow::devices
