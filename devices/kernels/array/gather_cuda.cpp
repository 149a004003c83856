// Gather and GatherV2. An index out of range is an error if the host has the
// index. If it is only on the GPU, the result is zeros: a check would have to
// wait.
#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/device.h"
#include "devices/kernel_inputs.h"
#include "devices/kernels/array/gather_plan.h"

namespace tagflow::devices {
namespace {

class GatherCudaKernel final : public CudaKernel {
 public:
  GatherCudaKernel(std::unique_ptr<Kernel> cpu, int64_t batch_dims)
      : CudaKernel(std::move(cpu), {Runs::kOnGpu, {false, false, true}}),
        batch_dims_(batch_dims) {}

  Status check(const KernelContext& context) const override {
    const Tensor& indices = context.input(1);
    if (!host_readable(indices)) return {};
    TAGFLOW_ASSIGN(const GatherPlan plan, plan_gather(context, batch_dims_));
    for (int64_t i = 0; i < indices.num_elements(); ++i)
      if (const int64_t index = index_at(indices, i);
          index < 0 || index >= plan.limit)
        return context.fail("indices[{}] = {} is outside [0, {})", i, index,
                            plan.limit);
    return {};
  }

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& params = context.input(0);
    const Tensor& indices = context.input(1);
    TAGFLOW_ASSIGN(const GatherPlan plan, plan_gather(context, batch_dims_));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, plan.shape));
    if (out->num_elements() == 0) return {};
    cuda::GatherArgs args;
    args.count = plan.per_batch;
    args.slice = plan.slice;
    args.outer = out->num_elements() / plan.slice / plan.per_batch;
    args.repeat = plan.repeat;
    args.limit = plan.limit;
    args.params = operand_of(params);
    args.indices = operand_of(indices);
    args.wide_indices = indices.dtype() == DataType::kInt64;
    args.out = out->mutable_raw();
    return cuda_status(cuda::gather(args, dtype_size(out->dtype()), stream),
                       "launching " + context.node().op());
  }

 private:
  int64_t batch_dims_;
};

}  // namespace

void register_cuda_gather_kernels(KernelRegistry& registry) {
  for (const char* op : {"Gather", "GatherV2"})
    add_cuda_kernel(
        registry, op, {{"Tindices", {DataType::kInt32, DataType::kInt64}}},
        [](const KernelInfo& info,
           std::unique_ptr<Kernel> cpu) -> Result<std::unique_ptr<Kernel>> {
          return std::unique_ptr<Kernel>(std::make_unique<GatherCudaKernel>(
              std::move(cpu), attr_of<int64_t>(info, "batch_dims")));
        });
}

}  // namespace tagflow::devices
