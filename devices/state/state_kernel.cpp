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

Result<Variable*> variable_input(const KernelContext& context, int input) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() == DataType::kResource && tensor.num_elements() == 1)
      [[likely]] {
    const auto& handle = *tensor.data<ResourceHandle>();
    if (Variable* variable = state_object<Variable>(handle)) [[likely]]
      return variable;
    return context.fail(
        "input {} is no variable but {}", input,
        handle.get() == nullptr ? "an empty handle" : handle.get()->describe());
  }
  return context.fail("input {} must be the handle of one variable, not {}",
                      input, tensor.describe());
}

Status claim_variable(const KernelContext& context, int input,
                      StateLock::Mode mode, StateClaim& claim) {
  TAGFLOW_ASSIGN(Variable * variable, variable_input(context, input));
  claim.add(variable->lock(), mode, *variable);
  return {};
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
