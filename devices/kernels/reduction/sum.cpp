// Sum, Mean and L2Loss.
#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

// Half the sum of the squares.
template <class T>
struct L2LossOp {
  using In = T;
  using Acc = Accumulator<T>;
  using Out = T;
  static Acc initial() { return Acc(0); }
  static Acc load(T value) { return Acc(value) * Acc(value); }
  static Acc combine(Acc a, Acc b) { return a + b; }
  static T finish(Acc sum, int64_t) { return static_cast<T>(sum / 2); }
};

class L2LossKernel final : public Kernel {
 public:
  L2LossKernel(const KernelInfo&, const ReductionLoops* loops)
      : loops_(loops) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    ReductionPlan plan;
    plan.reduced_count = input.num_elements();
    plan.ends_reduced = true;
    if (plan.reduced_count > 1) plan.reduced.push_back({plan.reduced_count, 1});
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, Shape()));
    reduce(context, plan, *loops_, input.raw(), out->mutable_raw());
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.2;
  }

 private:
  const ReductionLoops* loops_;
};

}  // namespace

void register_reduction_sum_kernels(KernelRegistry& registry) {
  const auto add = [&]<class T>(TypeTag<T>) {
    const TypeLimits types = {{"T", {kDataTypeOf<T>}}};
    add_reduction<SumOp<T>>(registry, "Sum", types);
    add_reduction<MeanOp<T>>(registry, "Mean", types);
  };
  for_each_numeric(add);
  for_each_floating([&]<class T>(TypeTag<T>) {
    registry.add<L2LossKernel>("L2Loss", {{"T", {kDataTypeOf<T>}}},
                               &kReductionLoops<L2LossOp<T>>);
  });
}

}  // namespace tagflow::devices
