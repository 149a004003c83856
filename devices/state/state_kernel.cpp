#include "devices/state/state_kernel.h"

namespace tagflow::devices {

Status StateKernel::compute(KernelContext& context) const {
  StateClaim held;
  TAGFLOW_RETURN_IF_ERROR(claim(context, held));
  if (!held.take_blocking(context.step().cancels))
    return error(Code::kCancelled, "[{}] the step was cancelled",
                 context.node().op());
  return compute_held(context);
}

Status not_a_variable(const KernelContext& context, int input) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() != DataType::kResource || tensor.num_elements() != 1)
    return context.fail("input {} must be the handle of one variable, not {}",
                        input, tensor.describe());
  const Resource* const found = tensor.data<ResourceHandle>()->get();
  return context.fail("input {} is no variable but {}", input,
                      found == nullptr ? "an empty handle" : found->describe());
}

Status UpdateKernel::compute_held(KernelContext& context) const {
  const Commit commit = context.commit();
  if (!commit) return too_late(context);
  return update(context);
}

Status too_late(const KernelContext& context) {
  return error(Code::kCancelled, "[{}] the step has been answered",
               context.node().op());
}

}  // namespace tagflow::devices
