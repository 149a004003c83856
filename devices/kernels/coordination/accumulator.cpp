// Accumulators of gradients: creation, addition, and taking the mean or the
// sum.
#include "devices/state/accumulator.h"

#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

AccumulatorSpec accumulator_spec(const KernelInfo& info) {
  return {attr_of<DataType>(info, "dtype"),
          attr_of<PartialShape>(info, "shape"),
          attr_of<std::string>(info, "reduction_type") == "MEAN",
          info.node().op() == "SparseConditionalAccumulator"};
}

class AccumulatorKernel final : public CheapKernel {
 public:
  explicit AccumulatorKernel(const KernelInfo& info)
      : resource_(info), spec_(accumulator_spec(info)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(
        resource_.set_handle(context, [this]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(make_ref_counted<ConditionalAccumulator>(
              resource_.is_anonymous() ? "" : resource_.key().name, spec_));
        }));
    // Another node may have made it.
    const auto* made = state_object<ConditionalAccumulator>(
        *context.output(0).data<ResourceHandle>());
    if (made->spec() == spec_) return {};
    return context.fail("{} is a {}, but the node asks for a {}",
                        made->describe(), made->spec().describe(),
                        spec_.describe());
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const ResourceOp resource_;
  const AccumulatorSpec spec_;
};

const ConditionalAccumulator& accumulator_of(const StateActor& actor) {
  return static_cast<const ConditionalAccumulator&>(actor);
}
ConditionalAccumulator& accumulator_of(StateActor& actor) {
  return static_cast<ConditionalAccumulator&>(actor);
}

// The scalar of an int64 input, which is a step.
Result<int64_t> step_input(const KernelContext& context,
                           std::string_view name) {
  const Tensor& step = context.input(1);
  if (step.is_scalar()) return step.scalar_value<int64_t>();
  return context.fail("{} must be a scalar, not {}", name, step.describe());
}

class ApplyGradientKernel final : public HandleKernel<ConditionalAccumulator> {
 public:
  explicit ApplyGradientKernel(const KernelInfo&) {}
  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    TAGFLOW_RETURN_IF_ERROR(step_input(context, "local_step").status());
    return accumulator_of(actor).check_use(context, context.input(2).dtype(),
                                           false);
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    ConditionalAccumulator& accumulator = accumulator_of(actor);
    TAGFLOW_ASSIGN(const int64_t step, step_input(context, "local_step"));
    if (accumulator.is_stale(step)) return {};
    return accumulator.add(context, context.input(2));
  }
};

class ApplySparseGradientKernel final
    : public HandleKernel<ConditionalAccumulator> {
 public:
  explicit ApplySparseGradientKernel(const KernelInfo& info)
      : has_shape_(attr_of<bool>(info, "has_known_shape")) {}

  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    const ConditionalAccumulator& accumulator = accumulator_of(actor);
    const Tensor& indices = context.input(2);
    const Tensor& values = context.input(3);
    TAGFLOW_RETURN_IF_ERROR(step_input(context, "local_step").status());
    TAGFLOW_RETURN_IF_ERROR(
        accumulator.check_use(context, values.dtype(), true));
    if (indices.rank() != 1)
      return context.fail("indices must be a vector, not {}",
                          indices.describe());
    if (values.rank() < 1)
      return context.fail("values must have rows, not be {}",
                          values.describe());
    if (indices.dim(0) != values.dim(0))
      return context.fail("there are {} indices for {} rows of values",
                          indices.dim(0), values.dim(0));
    const PartialShape& shape = accumulator.spec().shape;
    if (has_shape_) {
      TAGFLOW_RETURN_IF_ERROR(check_given_shape(context, shape));
    }
    return check_rows(context, accumulator, shape);
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    ConditionalAccumulator& accumulator = accumulator_of(actor);
    TAGFLOW_ASSIGN(const int64_t step, step_input(context, "local_step"));
    if (accumulator.is_stale(step)) return {};
    return accumulator.add_rows(context, context.input(2), context.input(3));
  }

 private:
  // The shape of an accumulator says how those of its gradients begin.
  static Status check_start(const KernelContext& context, const char* what,
                            std::span<const int64_t> dims, int first,
                            const PartialShape& shape) {
    if (!shape.has_rank()) return {};
    if (shape.rank() > int(dims.size()))
      return context.fail("{} of rank {} do not fit: at least {} is wanted",
                          what, dims.size(), shape.rank());
    for (int d = first; d < shape.rank(); ++d)
      if (shape.dim_known(d) && shape.dim(d) != dims[size_t(d)])
        return context.fail("dimension {} of {} is {}, and {} is wanted", d,
                            what, dims[size_t(d)], shape.dim(d));
    return {};
  }

  static Status check_given_shape(const KernelContext& context,
                                  const PartialShape& shape) {
    const Tensor& given = context.input(4);
    if (given.rank() != 1)
      return context.fail("gradient_shape must be a vector, not {}",
                          given.describe());
    return check_start(context, "gradients", given.flat<int64_t>(), 0, shape);
  }

  static Status check_rows(const KernelContext& context,
                           const ConditionalAccumulator& accumulator,
                           const PartialShape& shape) {
    const auto indices = context.input(2).flat<int64_t>();
    const bool is_known =
        shape.has_rank() && shape.rank() > 0 && shape.dim_known(0);
    const int64_t rows =
        is_known ? shape.dim(0) : std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < indices.size(); ++i)
      if (indices[i] < 0 || indices[i] >= rows)
        return context.fail("slice {} has index {}, beyond the {} rows of {}",
                            i, indices[i], rows, accumulator.describe());
    return check_start(context, "values", context.input(3).shape().dims(), 1,
                       shape);
  }

  const bool has_shape_;
};

template <bool kIsSparse>
class TakeGradientKernel final : public HandleKernel<ConditionalAccumulator> {
 public:
  explicit TakeGradientKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(kIsSparse ? 1 : 0)) {}

  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand& errand) const override {
    TAGFLOW_RETURN_IF_ERROR(
        accumulator_of(actor).check_use(context, dtype_, kIsSparse));
    TAGFLOW_ASSIGN(errand.amount, int32_input(context, 1, "num_required"));
    if (errand.amount < 1)
      return context.fail("num_required must be positive, not {}",
                          errand.amount);
    return {};
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand& errand) const override {
    return accumulator_of(actor).count() >= errand.amount ? Readiness::kWhole
                                                          : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    return accumulator_of(actor).take(context);
  }

 private:
  const DataType dtype_;
};

class NumAccumulatedKernel final : public CheapKernel {
 public:
  explicit NumAccumulatedKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(ConditionalAccumulator * accumulator,
                   handle_input<ConditionalAccumulator>(context, 0));
    TAGFLOW_RETURN_IF_ERROR(accumulator->ended());
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    context.set_output(
        0, Tensor::scalar(int32_t(std::min(accumulator->count(), kMost))));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

class SetGlobalStepKernel final : public HandleKernel<ConditionalAccumulator> {
 public:
  explicit SetGlobalStepKernel(const KernelInfo&) {}
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    TAGFLOW_ASSIGN(const int64_t step, step_input(context, "new_global_step"));
    accumulator_of(actor).set_step(step);
    return {};
  }
};

}  // namespace

void register_accumulator_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"ConditionalAccumulator", "SparseConditionalAccumulator",
        "ResourceConditionalAccumulator"})
    registry.add<AccumulatorKernel>(op);
  for (const std::string start : {"Accumulator", "ResourceAccumulator"}) {
    registry.add<ApplyGradientKernel>(start + "ApplyGradient");
    registry.add<TakeGradientKernel<false>>(start + "TakeGradient");
    registry.add<NumAccumulatedKernel>(start + "NumAccumulated");
    registry.add<SetGlobalStepKernel>(start + "SetGlobalStep");
  }
  registry.add<ApplySparseGradientKernel>("SparseAccumulatorApplyGradient");
  registry.add<TakeGradientKernel<true>>("SparseAccumulatorTakeGradient");
}

}  // namespace tagflow::devices
