#include "devices/kernel.h"

#include <algorithm>

#include "graph/status_exception.h"

namespace tagflow::devices {
namespace {

// The number of units in a block: Note [Interruption].
int64_t block_length(double unit_cost, double call_cost) {
  constexpr double kLeastCost = 1e-3, kCallShare = 0.05;
  const double nanoseconds =
      std::max(KernelContext::kBlockNanoseconds, call_cost / kCallShare);
  return int64_t(
      std::clamp(nanoseconds / std::max(unit_cost, kLeastCost), 1.0, 1e15));
}

// Calls the body for blocks of equal lengths that are `most` at most.
void run_blocks(const KernelContext& context, int64_t begin, int64_t end,
                int64_t most, RangeBody body) {
  for (int64_t blocks = (end - begin - 1) / most + 1; blocks > 0; --blocks) {
    const int64_t stop = begin + (end - begin) / blocks;
    context.check_cancelled();
    body(begin, stop);
    begin = stop;
  }
}

}  // namespace

double Kernel::cost(const KernelContext&) const { return kUnknownCost; }

double CheapKernel::cost(const KernelContext&) const { return 0; }

double AsyncKernel::cost(const KernelContext&) const { return 0; }

std::optional<Status> AsyncKernel::try_compute(KernelContext&) const {
  return std::nullopt;
}

std::string AsyncKernel::describe_wait(const KernelContext&) const {
  return {};
}

Status AsyncKernel::compute(KernelContext& context) const {
  return error(Code::kInternal, "[{}] is asynchronous", context.node().op());
}

Result<Tensor*> KernelContext::allocate_output(int i, const Shape& shape) {
  TAGFLOW_ASSIGN(
      outputs_[size_t(i)],
      Tensor::allocate(node_->output_dtypes()[size_t(i)], shape, *allocator_));
  return &outputs_[size_t(i)];
}

Result<Tensor*> KernelContext::allocate_host_output(int i, const Shape& shape) {
  TAGFLOW_ASSIGN(outputs_[size_t(i)],
                 Tensor::allocate(node_->output_dtypes()[size_t(i)], shape,
                                  host_memory()));
  return &outputs_[size_t(i)];
}

Result<Tensor*> KernelContext::forward_or_allocate(int candidate, int i,
                                                   const Shape& shape) {
  return step_->forward_buffers ? change_or_allocate(candidate, i, shape)
                                : allocate_output(i, shape);
}

Result<Tensor*> KernelContext::change_or_allocate(int candidate, int i,
                                                  const Shape& shape) {
  const Tensor& from = inputs_[size_t(candidate)];
  if (from.buffer() != nullptr && from.unique() &&
      from.dtype() == node_->output_dtypes()[size_t(i)] &&
      (!is_plain(from.dtype()) ||
       allocator_->shares_memory(*from.buffer()->allocator)) &&
      from.shape() == shape) {
    // A second reference: the kernel still reads the input through its slot.
    outputs_[size_t(i)] = from;
    if (!is_plain(from.dtype())) from.expect_change();
    return &outputs_[size_t(i)];
  }
  return allocate_output(i, shape);
}

Result<Tensor> KernelContext::allocate_temp(DataType dtype,
                                            const Shape& shape) {
  return Tensor::allocate(dtype, shape, *allocator_);
}

void KernelContext::interrupt() const {
  if (step_->commits != nullptr && step_->commits->is_entered()) return;
  throw StatusException(error(Code::kCancelled, "the step was cancelled"));
}

void KernelContext::parallel_for(int64_t total, double unit_cost,
                                 RangeBody body, double call_cost) const {
  if (total <= 0) return;
  const auto run = [&](RangeBody part) {
    if (step_->parallel == nullptr) {
      part(0, total);
    } else {
      step_->parallel->run(total, unit_cost, part);
    }
  };
  // Most calls are short.
  if (unit_cost * double(total) <= kBlockNanoseconds) {
    check_cancelled();
    return run(body);
  }
  const int64_t most = block_length(unit_cost, call_cost);
  run([&](int64_t begin, int64_t end) {
    run_blocks(*this, begin, end, most, body);
  });
}

void KernelContext::for_blocks(int64_t total, double unit_cost,
                               RangeBody body) const {
  if (total <= 0) return;
  if (unit_cost * double(total) <= kBlockNanoseconds) {
    check_cancelled();
    return body(0, total);
  }
  run_blocks(*this, 0, total, block_length(unit_cost, 0), body);
}

}  // namespace tagflow::devices
