// CudaKernel: what every kernel registered for GPUs is.
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
// What steers kernels, as shapes, axes and counters, is small, and is read on
// the host. So it stays there: a node whose inputs are all small values of the
// host is computed by the CPU's kernel, unless its results are large. A GPU's
// kernel takes such a value along with the launch. An input that steers and is
// on the GPU, since it was computed from much, is fetched before the launch;
// launches that come after it do not wait.

// Small enough, and what steers: held in the token, or some integers or bools.
bool is_small_value(const Tensor& tensor);

class CudaKernel : public Kernel, public SavedReader {
 public:
  // Who does the work.
  enum class Runs : uint8_t {
    kOnHost,   // the CPU's kernel, which looks at no element but those of
               // inputs that steer
    kByMover,  // the same, but elements are moved by an ElementMover
    kOnGpu,    // enqueue()
  };
  struct Traits {
    Runs runs = Runs::kOnGpu;
    // Inputs that must be in the host's memory.
    std::vector<bool> steers;
    // Whether others may be in the host's memory where an Operand holds them.
    bool takes_values = true;
    // Whether small values may stay with the host: they are only handed on.
    bool hands_on = false;
  };

  // `cpu` is the CPU's kernel of the node.
  CudaKernel(std::unique_ptr<Kernel> cpu, Traits traits)
      : cpu_(std::move(cpu)), traits_(std::move(traits)) {}

  // Not used.
  Status compute(KernelContext& context) const final;
  // Launched, not computed, it takes no worker's time.
  bool may_be_expensive() const final { return false; }
  ScalarFunction scalar_function() const final {
    return cpu_->scalar_function();
  }

  Ref<SavedTensor> next_saved(const KernelContext& context) const final {
    return devices::next_saved(*cpu_, context);
  }

  // The CPU's.
  const Kernel& inner() const final { return *cpu_; }
  Runs runs() const { return traits_.runs; }
  bool steers(int input) const {
    return size_t(input) < traits_.steers.size() &&
           traits_.steers[size_t(input)];
  }
  bool takes_values() const { return traits_.takes_values; }
  bool hands_on() const { return traits_.hands_on; }

  // What is wrong with values that only the host can look at: called before
  // the launch, when inputs of the host are still there. Thread-safe.
  virtual Status check(const KernelContext&) const { return {}; }
  // Enqueues the work on the stream, for which outputs are allocated in its
  // order. Inputs are in the GPU's memory, but for what the traits say.
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

using TypeLimits = std::map<std::string, std::vector<DataType>>;
// Those that kernels for GPUs compute with.
inline const std::vector<DataType> kCudaFloats = {
    DataType::kFloat, DataType::kDouble, DataType::kHalf, DataType::kBFloat16};
inline const std::vector<DataType> kCudaNumbers = {
    DataType::kFloat,    DataType::kDouble, DataType::kHalf,
    DataType::kBFloat16, DataType::kInt32,  DataType::kInt64};

// How a kernel of the CPU is run for a GPU.
struct Borrowing {
  CudaKernel::Runs runs = CudaKernel::Runs::kByMover;
  Steering steering = {};
  TypeLimits types = {};
  bool takes_values = true;  // this and `hands_on`: see CudaKernel::Traits
  bool hands_on = false;
  // Also nodes with handles, references or variants. Where the kernel looks at
  // these only (Kernel::is_bookkeeping), it serves as it is.
  bool takes_handles = false;
};
void add_borrowed(KernelRegistry& registry, const std::string& op,
                  Borrowing how);

// A kernel that `make` makes of the node and the CPU's kernel for it.
using CudaFactory = std::function<Result<std::unique_ptr<Kernel>>(
    const KernelInfo& info, std::unique_ptr<Kernel> cpu)>;
void add_cuda_kernel(KernelRegistry& registry, const std::string& op,
                     TypeLimits types, CudaFactory make,
                     bool takes_handles = false);

// One per cuda_*.cpp with kernels; all are called by register_cuda_kernels().
void register_cuda_borrowed_kernels(KernelRegistry& registry);
void register_cuda_elementwise_kernels(KernelRegistry& registry);
void register_cuda_select_kernels(KernelRegistry& registry);
void register_cuda_fused_kernels(KernelRegistry& registry);
void register_cuda_reduction_kernels(KernelRegistry& registry);
void register_cuda_gather_kernels(KernelRegistry& registry);
void register_cuda_loss_kernels(KernelRegistry& registry);
void register_cuda_container_kernels(KernelRegistry& registry);
void register_cuda_variable_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
