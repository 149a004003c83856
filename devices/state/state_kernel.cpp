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
