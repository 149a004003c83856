// CudaKernel: the base of every kernel registered for GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/saved_tensor.h"

namespace tagflow::devices {

// Note [Small values]
//
// Parameters of kernels, such as shapes, axes and counters, are small and are
// read on the host. So they stay there: a node whose inputs are all small host
// values is computed by the CPU's kernel, unless its results are large. A GPU
// kernel receives such a value with the launch. A parameter input (it *steers*)
// that is on the GPU, since it was computed from large data, is fetched before
// the launch; later launches do not wait for it.

// Whether it is small and may steer: inline, or a few integers or bools.
bool is_small_value(const Tensor& tensor);

class CudaKernel : public Kernel, public SavedReader {
 public:
  // Where the work is done.
  enum class Runs : uint8_t {
    kOnHost,   // the CPU's kernel, which reads only elements of
               // inputs that steer
    kByMover,  // the same, but an ElementMover moves elements
    kOnGpu,    // enqueue()
  };
  struct Traits {
    Runs runs = Runs::kOnGpu;
    // Inputs that must be in the host's memory.
    std::vector<bool> steers;
    // Whether other inputs may be on the host if an Operand holds them.
    bool takes_values = true;
    // Whether small values may stay on the host: they are only passed on.
    bool hands_on = false;
  };

  // `cpu` is the node's CPU kernel.
  CudaKernel(std::unique_ptr<Kernel> cpu, Traits traits)
      : cpu_(std::move(cpu)), traits_(std::move(traits)) {}

  // Not used.
  Status compute(KernelContext& context) const final;
  // It is launched, not computed, and takes no worker's time.
  bool may_be_expensive() const final { return false; }
  ScalarFunction scalar_function() const final {
    return cpu_->scalar_function();
  }

  Ref<SavedTensor> next_saved(const KernelContext& context) const final {
    return devices::next_saved(*cpu_, context);
  }

  // The CPU kernel.
  const Kernel& inner() const final { return *cpu_; }
  Runs runs() const { return traits_.runs; }
  bool steers(int input) const {
    return size_t(input) < traits_.steers.size() &&
           traits_.steers[size_t(input)];
  }
  bool takes_values() const { return traits_.takes_values; }
  bool hands_on() const { return traits_.hands_on; }

  // Checks values that only the host can read: called before the launch, when
  // host inputs are still there. Thread-safe.
  virtual Status check(const KernelContext&) const { return {}; }
  // Enqueues the work on the stream; outputs are allocated in its order. Inputs
  // are in the GPU's memory, except as the traits say.
  virtual Status enqueue(KernelContext& context, cudaStream_t stream) const = 0;

 private:
  const std::unique_ptr<Kernel> cpu_;
  const Traits traits_;
};

// --- For registering --------------------------------------------------------

// Which inputs steer: all, or these, where -1 is the last one.
struct Steering {
  bool all = false;
  std::vector<int> inputs;

  static Steering everything() { return {true, {}}; }
  std::vector<bool> of(int num_inputs) const;
};

// The types that GPU kernels compute with. Functions, since kernels may be
// registered before the variables of a source are initialised.
inline std::vector<DataType> cuda_floats() {
  return {DataType::kFloat, DataType::kDouble, DataType::kHalf,
          DataType::kBFloat16};
}
inline std::vector<DataType> cuda_numbers() {
  return {DataType::kFloat,    DataType::kDouble, DataType::kHalf,
          DataType::kBFloat16, DataType::kInt32,  DataType::kInt64};
}

// How a CPU kernel is run for a GPU.
struct Borrowing {
  CudaKernel::Runs runs = CudaKernel::Runs::kByMover;
  Steering steering = {};
  TypeLimits types = {};
  bool takes_values = true;  // this and `hands_on`: see CudaKernel::Traits
  bool hands_on = false;
  // Also for nodes with handles, references or variants. A kernel that uses
  // only these (Kernel::is_bookkeeping) is used unchanged.
  bool takes_handles = false;
};
void add_borrowed(KernelRegistry& registry, const std::string& op,
                  Borrowing how);

// Makes a kernel from the node and its CPU kernel.
using CudaFactory = std::function<Result<std::unique_ptr<Kernel>>(
    const KernelInfo& info, std::unique_ptr<Kernel> cpu)>;
void add_cuda_kernel(KernelRegistry& registry, const std::string& op,
                     TypeLimits types, CudaFactory make,
                     bool takes_handles = false);

// One per file of kernels; register_cuda_kernels() calls all.
void register_cuda_borrowed_kernels(KernelRegistry& registry);
void register_cuda_elementwise_kernels(KernelRegistry& registry);
void register_cuda_select_kernels(KernelRegistry& registry);
void register_cuda_bias_kernels(KernelRegistry& registry);
void register_cuda_fused_kernels(KernelRegistry& registry);
void register_cuda_reduction_kernels(KernelRegistry& registry);
void register_cuda_gather_kernels(KernelRegistry& registry);
void register_cuda_loss_kernels(KernelRegistry& registry);
void register_cuda_container_kernels(KernelRegistry& registry);
void register_cuda_variable_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
