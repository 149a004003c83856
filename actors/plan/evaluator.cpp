#include "actors/plan/evaluator.h"

#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "devices/tracking_allocator.h"
#include "graph/op_registry.h"

namespace tagflow::actors {
namespace {

// Moves strings that only `value` holds to the host's memory: they may become
// those of a variable, which grow.
void move_strings_to_host(Tensor& value) {
  if (value.dtype() != DataType::kString || !value.unique()) return;
  Tensor moved = Tensor::make(DataType::kString, value.shape());
  std::ranges::move(value.mutable_flat<std::string>(),
                    moved.mutable_data<std::string>());
  value = std::move(moved);
}

}  // namespace

bool KernelEvaluator::take(int64_t nanoseconds) const {
  int64_t left = left_.load(std::memory_order_relaxed);
  do {
    if (nanoseconds > left) return false;
  } while (!left_.compare_exchange_weak(left, left - nanoseconds,
                                        std::memory_order_relaxed));
  return true;
}

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
  // The memory counts each buffer up to a multiple of 64 bytes.
  const size_t limit = max_bytes + 64 * outputs.size();
  const auto memory =
      devices::TrackingAllocator::make({"folding", int64_t(limit)});
  devices::KernelContext context(&node, values, outputs, &step, &tag,
                                 memory.get());
  if (kernel->may_be_expensive()) {
    const double cost = devices::cost_of(*kernel, context);
    if (!(cost <= devices::Kernel::kMostFoldedNanoseconds) ||
        !take(int64_t(cost)))
      return error(Code::kResourceExhausted, "[{}] the kernel takes too long",
                   node.op());
  }
  TAGFLOW_RETURN_IF_ERROR(devices::run_kernel(*kernel, context));
  for (Tensor& output : outputs) move_strings_to_host(output);
  return outputs;
}

}  // namespace tagflow::actors
