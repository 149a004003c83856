#include "devices/cuda/cuda_kernel.h"

#include "devices/cuda_type.h"
#include "devices/device.h"

namespace tagflow::devices {
namespace {

// See CudaKernel::Runs.
class BorrowedKernel final : public CudaKernel {
 public:
  using CudaKernel::CudaKernel;

  Status enqueue(KernelContext& context, cudaStream_t) const override {
    return inner().compute(context);
  }
};

}  // namespace

bool is_small_value(const Tensor& tensor) {
  constexpr size_t kSmall = 256;  // bytes
  if (tensor.buffer() == nullptr) return tensor.valid();
  return host_readable(tensor) && tensor.bytes() <= kSmall &&
         (is_integer(tensor.dtype()) || tensor.dtype() == DataType::kBool);
}

Status CudaKernel::compute(KernelContext& context) const {
  return error(Code::kInternal, "[{}] is launched, not computed",
               context.node().op());
}

std::vector<bool> Steering::of(int num_inputs) const {
  std::vector<bool> steers(size_t(num_inputs), all);
  for (const int input : inputs) {
    const int at = input < 0 ? input + num_inputs : input;
    if (at >= 0 && at < num_inputs) steers[size_t(at)] = true;
  }
  return steers;
}

void add_cuda_kernel(KernelRegistry& registry, const std::string& op,
                     TypeLimits types, CudaFactory make, bool takes_handles) {
  KernelDef def;
  def.op = op;
  def.device_type = "GPU";
  def.types = std::move(types);
  def.takes_handles = takes_handles;
  def.factory = [&registry, make = std::move(make)](
                    const KernelInfo& info) -> Result<std::unique_ptr<Kernel>> {
    TAGFLOW_ASSIGN(auto cpu, registry.make(info.node(), "CPU"));
    return make(info, std::move(cpu));
  };
  registry.add(std::move(def));
}

void add_borrowed(KernelRegistry& registry, const std::string& op,
                  Borrowing how) {
  TypeLimits types = std::move(how.types);
  const bool takes_handles = how.takes_handles;
  add_cuda_kernel(
      registry, op, std::move(types),
      [how = std::move(how)](
          const KernelInfo& info,
          std::unique_ptr<Kernel> cpu) -> Result<std::unique_ptr<Kernel>> {
        if (how.takes_handles && cpu->is_bookkeeping()) return cpu;
        CudaKernel::Traits traits{how.runs, how.steering.of(info.num_inputs()),
                                  how.takes_values, how.hands_on};
        return std::unique_ptr<Kernel>(std::make_unique<BorrowedKernel>(
            std::move(cpu), std::move(traits)));
      },
      takes_handles);
}

void register_cuda_kernels(KernelRegistry& registry) {
  register_cuda_borrowed_kernels(registry);
  register_cuda_elementwise_kernels(registry);
  register_cuda_select_kernels(registry);
  register_cuda_bias_kernels(registry);
  register_cuda_fused_kernels(registry);
  register_cuda_reduction_kernels(registry);
  register_cuda_gather_kernels(registry);
  register_cuda_loss_kernels(registry);
  register_cuda_container_kernels(registry);
  register_cuda_variable_kernels(registry);
  registry.limit("GPU", is_plain_node, "inputs and outputs of plain types");
}

}  // namespace tagflow::devices
