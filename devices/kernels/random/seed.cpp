// StatelessRandomGetKeyCounter, StatelessRandomGetKeyCounterAlg,
// StatelessRandomGetAlg: the inputs of the V2 ops.
#include "devices/kernels/random/stream.h"

namespace tagflow::devices {

namespace {

constexpr int32_t kAlgorithmOfCpu = 1;

class GetKeyCounterKernel : public CheapKernel {
 public:
  explicit GetKeyCounterKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(check_seed(context, 0));
    const Philox stream = seeded_stream(context.input(0));
    context.set_output(0, Tensor::vector<uint64_t>({stream.key()}));
    context.set_output(1, Tensor::vector<uint64_t>(
                              {stream.counter_low(), stream.counter_high()}));
    if (context.num_outputs() == 3)
      context.set_output(2, Tensor::scalar(kAlgorithmOfCpu));
    return {};
  }
};

class GetAlgKernel final : public CheapKernel {
 public:
  explicit GetAlgKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    context.set_output(0, Tensor::scalar(kAlgorithmOfCpu));
    return {};
  }
};

}  // namespace

void register_random_seed_kernels(KernelRegistry& registry) {
  registry.add<GetKeyCounterKernel>("StatelessRandomGetKeyCounter");
  registry.add<GetKeyCounterKernel>("StatelessRandomGetKeyCounterAlg");
  registry.add<GetAlgKernel>("StatelessRandomGetAlg");
}

}  // namespace tagflow::devices
