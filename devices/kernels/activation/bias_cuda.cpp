// BiasAdd, which broadcasts along one dimension.
#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/kernels/reduction/channels.h"

namespace tagflow::devices {
namespace {

class BiasAddCudaKernel final : public CudaKernel {
 public:
  BiasAddCudaKernel(std::unique_ptr<Kernel> cpu, cuda::Element type,
                    bool channels_first)
      : CudaKernel(std::move(cpu), {}),
        type_(type),
        channels_first_(channels_first) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& value = context.input(0);
    const Tensor& bias = context.input(1);
    TAGFLOW_ASSIGN(const Channels channels,
                   split_channels(context, value, channels_first_));
    if (bias.rank() != 1 || bias.dim(0) != channels.count)
      return context.fail("the bias is {}, not a vector of {} for {}",
                          bias.describe(), channels.count, value.describe());
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, value.shape()));
    cuda::ElementwiseArgs args;
    args.total = value.num_elements();
    if (args.total == 0) return {};
    args.loops = 3;
    const int64_t counts[] = {channels.outer, channels.count, channels.inner};
    const int64_t strides[] = {channels.count * channels.inner, channels.inner,
                               1};
    for (int i = 0; i < 3; ++i) {
      args.counts[i] = counts[i];
      args.strides[0][i] = strides[i];
      args.strides[1][i] = i == 1 ? 1 : 0;
    }
    args.in[0] = operand_of(value);
    args.in[1] = operand_of(bias);
    args.out = out->mutable_raw();
    return cuda_status(cuda::binary(cuda::Binary::kAdd, type_, args, stream),
                       "launching " + context.node().op());
  }

 private:
  cuda::Element type_;
  bool channels_first_;
};

}  // namespace

void register_cuda_bias_kernels(KernelRegistry& registry) {
  for (const char* op : {"BiasAdd", "BiasAddV1"})
    add_cuda_kernel(
        registry, op, {{"T", cuda_numbers()}},
        [](const KernelInfo& info,
           std::unique_ptr<Kernel> cpu) -> Result<std::unique_ptr<Kernel>> {
          TAGFLOW_ASSIGN(const bool first, channels_first(info));
          return std::unique_ptr<Kernel>(std::make_unique<BiasAddCudaKernel>(
              std::move(cpu), *element_of(info.input_dtype(0)), first));
        });
}

}  // namespace tagflow::devices
