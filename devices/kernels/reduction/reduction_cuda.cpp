// Reductions, Softmax, ArgMax and ArgMin: shapes and memory.
#include <limits>

#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/kernel_inputs.h"
#include "devices/kernels/reduction/channels.h"
#include "devices/kernels/reduction/plan.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

using cuda::Element;
using cuda::Reduction;

Result<cuda::Runs> runs_of(const KernelContext& context,
                           const ReductionPlan::Runs& runs) {
  if (runs.size() > size_t(cuda::kMaxLoops))
    return error(Code::kUnimplemented,
                 "[{}] a reduction over {} runs of dimensions, a GPU's kernels "
                 "support {}",
                 context.node().op(), runs.size(), cuda::kMaxLoops);
  cuda::Runs result;
  for (const ReductionPlan::Run& run : runs) {
    result.sizes[result.count] = run.size;
    result.steps[result.count++] = run.step;
  }
  return result;
}

// Reduces input 0 to output 0, which is allocated here.
Status run_reduction(KernelContext& context, const ReductionPlan& plan,
                     Reduction op, Element type, cudaStream_t stream) {
  TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, plan.output_shape));
  if (plan.kept_count == 0) return {};
  cuda::ReductionArgs args;
  TAGFLOW_ASSIGN(args.kept, runs_of(context, plan.kept));
  TAGFLOW_ASSIGN(args.reduced, runs_of(context, plan.reduced));
  args.kept_count = plan.kept_count;
  args.reduced_count = plan.reduced_count;
  args.ends_reduced = plan.ends_reduced;
  args.in = context.input(0).raw();
  args.out = out->mutable_raw();
  args.parts = cuda::reduction_parts(args);
  Tensor partial;
  if (args.parts > 1) {
    TAGFLOW_ASSIGN(
        partial,
        context.allocate_temp(DataType::kInt8, {args.kept_count * args.parts,
                                                int64_t(cuda::kPartialBytes)}));
    args.partial = partial.mutable_raw();
  }
  return cuda_status(cuda::reduce(op, type, args, stream),
                     "launching " + context.node().op());
}

class ReductionCudaKernel final : public CudaKernel {
 public:
  ReductionCudaKernel(std::unique_ptr<Kernel> cpu, Reduction op, Element type,
                      bool keep_dims)
      : CudaKernel(std::move(cpu), {Runs::kOnGpu, {false, true}, false}),
        op_(op),
        type_(type),
        keep_dims_(keep_dims) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    TAGFLOW_ASSIGN(const ReductionPlan plan,
                   plan_reduction(context, context.input(0), context.input(1),
                                  keep_dims_));
    if (plan.reduced_count == 1) {
      TAGFLOW_ASSIGN(Tensor same, context.input(0).reshaped(plan.output_shape));
      context.set_output(0, std::move(same));
      return {};
    }
    return run_reduction(context, plan, op_, type_, stream);
  }

 private:
  Reduction op_;
  Element type_;
  bool keep_dims_;
};

// Half the sum of all squares.
class L2LossCudaKernel final : public CudaKernel {
 public:
  L2LossCudaKernel(std::unique_ptr<Kernel> cpu, Element type)
      : CudaKernel(std::move(cpu), {Runs::kOnGpu, {}, false}), type_(type) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    ReductionPlan plan;
    plan.reduced_count = context.input(0).num_elements();
    plan.ends_reduced = true;
    if (plan.reduced_count > 1) plan.reduced.push_back({plan.reduced_count, 1});
    return run_reduction(context, plan, Reduction::kHalfSquares, type_, stream);
  }

 private:
  Element type_;
};

class BiasAddGradCudaKernel final : public CudaKernel {
 public:
  BiasAddGradCudaKernel(std::unique_ptr<Kernel> cpu, Element type, bool first)
      : CudaKernel(std::move(cpu), {Runs::kOnGpu, {}, false}),
        type_(type),
        channels_first_(first) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& value = context.input(0);
    TAGFLOW_ASSIGN(const Channels c,
                   split_channels(context, value, channels_first_));
    return run_reduction(context, channel_sums(c, value.num_elements()),
                         Reduction::kSum, type_, stream);
  }

 private:
  Element type_;
  bool channels_first_;
};

class SoftmaxCudaKernel final : public CudaKernel {
 public:
  SoftmaxCudaKernel(std::unique_ptr<Kernel> cpu, Element type, bool logarithm)
      : CudaKernel(std::move(cpu), {Runs::kOnGpu, {}, false}),
        type_(type),
        logarithm_(logarithm) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& logits = context.input(0);
    if (logits.rank() == 0)
      return context.fail("the logits are a scalar; they must have classes");
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, logits.shape()));
    if (logits.num_elements() == 0) return {};
    cuda::SoftmaxArgs args;
    args.classes = logits.dim(logits.rank() - 1);
    args.rows = logits.num_elements() / args.classes;
    args.logarithm = logarithm_;
    args.in = logits.raw();
    args.out = out->mutable_raw();
    return cuda_status(cuda::softmax(type_, args, stream),
                       "launching " + context.node().op());
  }

 private:
  Element type_;
  bool logarithm_;
};

class ArgCudaKernel final : public CudaKernel {
 public:
  ArgCudaKernel(std::unique_ptr<Kernel> cpu, Element type, bool least)
      : CudaKernel(std::move(cpu), {Runs::kOnGpu, {false, true}, false}),
        type_(type),
        least_(least) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int axis, arg_axis(context));
    cuda::ArgArgs args;
    args.count = input.dim(axis);
    if (args.count == 0)
      return context.fail("dimension {} of {} is empty", axis,
                          input.describe());
    Shape shape;
    for (int i = 0; i < input.rank(); ++i)
      if (i != axis) shape.add_dim(input.dim(i));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (shape.num_elements() == 0) return {};
    for (int i = 0; i < input.rank(); ++i)
      if (i != axis) (i < axis ? args.outer : args.inner) *= input.dim(i);
    args.wide_result = out->dtype() == DataType::kInt64;
    if (!args.wide_result &&
        args.count - 1 > int64_t(std::numeric_limits<int32_t>::max()))
      return context.fail("a position in {} does not fit in {}",
                          input.describe(), dtype_name(out->dtype()));
    args.least = least_;
    args.in = input.raw();
    args.out = out->mutable_raw();
    return cuda_status(cuda::arg_extreme(type_, args, stream),
                       "launching " + context.node().op());
  }

 private:
  Element type_;
  bool least_;
};

// --- Registering ------------------------------------------------------------

using Made = Result<std::unique_ptr<Kernel>>;

Element input_element(const KernelInfo& info) {
  return *element_of(info.input_dtype(0));
}

void add_reduction(KernelRegistry& registry, const char* op,
                   Reduction reduction) {
  TypeLimits limits;
  if (reduction != Reduction::kAll && reduction != Reduction::kAny)
    limits = {{"T", cuda_numbers()}};
  add_cuda_kernel(
      registry, op, limits,
      [reduction](const KernelInfo& info, std::unique_ptr<Kernel> cpu) -> Made {
        return std::unique_ptr<Kernel>(std::make_unique<ReductionCudaKernel>(
            std::move(cpu), reduction, input_element(info),
            attr_of<bool>(info, "keep_dims")));
      });
}

}  // namespace

void register_cuda_reduction_kernels(KernelRegistry& registry) {
  add_reduction(registry, "Sum", Reduction::kSum);
  add_reduction(registry, "Mean", Reduction::kMean);
  add_reduction(registry, "Prod", Reduction::kProduct);
  add_reduction(registry, "Max", Reduction::kMax);
  add_reduction(registry, "Min", Reduction::kMin);
  add_reduction(registry, "All", Reduction::kAll);
  add_reduction(registry, "Any", Reduction::kAny);
  add_cuda_kernel(
      registry, "L2Loss", {{"T", cuda_floats()}},
      [](const KernelInfo& info, std::unique_ptr<Kernel> cpu) -> Made {
        return std::unique_ptr<Kernel>(std::make_unique<L2LossCudaKernel>(
            std::move(cpu), input_element(info)));
      });
  add_cuda_kernel(
      registry, "BiasAddGrad", {{"T", cuda_numbers()}},
      [](const KernelInfo& info, std::unique_ptr<Kernel> cpu) -> Made {
        TAGFLOW_ASSIGN(const bool first, channels_first(info));
        return std::unique_ptr<Kernel>(std::make_unique<BiasAddGradCudaKernel>(
            std::move(cpu), input_element(info), first));
      });
  for (const bool logarithm : {false, true})
    add_cuda_kernel(
        registry, logarithm ? "LogSoftmax" : "Softmax", {{"T", cuda_floats()}},
        [logarithm](const KernelInfo& info,
                    std::unique_ptr<Kernel> cpu) -> Made {
          return std::unique_ptr<Kernel>(std::make_unique<SoftmaxCudaKernel>(
              std::move(cpu), input_element(info), logarithm));
        });
  for (const bool least : {false, true})
    add_cuda_kernel(
        registry, least ? "ArgMin" : "ArgMax",
        {{"T", cuda_numbers()},
         {"output_type", {DataType::kInt32, DataType::kInt64}}},
        [least](const KernelInfo& info, std::unique_ptr<Kernel> cpu) -> Made {
          return std::unique_ptr<Kernel>(std::make_unique<ArgCudaKernel>(
              std::move(cpu), input_element(info), least));
        });
}

}  // namespace tagflow::devices
