#include "devices/kernel.h"

namespace tagflow::devices {

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

void KernelContext::parallel_for(int64_t total, double unit_cost,
                                 RangeBody body) const {
  if (total <= 0) return;
  if (step_->parallel == nullptr) {
    body(0, total);
  } else {
    step_->parallel->run(total, unit_cost, body);
  }
}

}  // namespace tagflow::devices
