#include "actors/plan/evaluator.h"

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/op_registry.h"

namespace tagflow::actors {
namespace {

// Allocates host memory up to a limit. Buffers are freed through the host's
// allocator, so they may outlive this one.
class LimitedAllocator final : public Allocator {
 public:
  explicit LimitedAllocator(size_t bytes) : left_(bytes) {}

  Buffer* allocate(DataType dtype, int64_t count) override {
    const size_t bytes = size_t(count) * dtype_size(dtype);
    size_t left = left_.load(std::memory_order_relaxed);
    do {
      if (bytes > left) return nullptr;
    } while (!left_.compare_exchange_weak(left, left - bytes,
                                          std::memory_order_relaxed));
    return host_allocator().allocate(dtype, count);
  }
  void deallocate(Buffer* buffer) override {
    host_allocator().deallocate(buffer);
  }

 private:
  std::atomic<size_t> left_;
};

}  // namespace

Result<std::vector<Tensor>> KernelEvaluator::evaluate(
    const graph::Node& node, std::span<const Tensor> inputs,
    size_t max_bytes) const {
  if (graph::OpRegistry::global().uses_files(node.op(), node.attrs()))
    return error(Code::kUnimplemented, "[{}] the kernel uses files", node.op());
  TAGFLOW_ASSIGN(const auto kernel,
                 devices::KernelRegistry::global().make(node, "CPU"));
  if (dynamic_cast<const devices::AsyncKernel*>(kernel.get()) != nullptr)
    return error(Code::kUnimplemented, "[{}] the kernel is asynchronous",
                 node.op());
  // Kernels may overwrite inputs that have no other owner: these copies keep a
  // second reference.
  std::vector<Tensor> values(inputs.begin(), inputs.end());
  std::vector<Tensor> outputs(size_t(node.num_outputs()));
  const devices::StepInfo step;
  const devices::Tag tag;
  LimitedAllocator allocator(max_bytes);
  devices::KernelContext context(&node, values, outputs, &step, &tag,
                                 &allocator);
  if (kernel->may_be_expensive()) {
    const double cost = devices::cost_of(*kernel, context);
    if (!(cost <= devices::Kernel::kMostFoldedNanoseconds) ||
        left_.fetch_sub(int64_t(cost)) < int64_t(cost))
      return error(Code::kResourceExhausted, "[{}] the kernel takes too long",
                   node.op());
  }
  TAGFLOW_RETURN_IF_ERROR(devices::run_kernel(*kernel, context));
  return outputs;
}

}  // namespace tagflow::actors
