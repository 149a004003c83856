// StateKernel: a kernel that uses state shared by steps.
#pragma once

#include "devices/kernel.h"
#include "devices/state/handle_input.h"
#include "devices/state/state_lock.h"
#include "devices/state/variable.h"

namespace tagflow::devices {

// A synchronous kernel that claims variables before it computes. If one is in
// use, the engine parks the kernel, and calls it again when it has all of them:
// Note [Parking] in state_lock.h.
class StateKernel : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  // Adds the state that compute_held() uses to the claim; an error is the
  // kernel's. The inputs must outlive the claim. Thread-safe.
  virtual Status claim(const KernelContext& context,
                       StateClaim& claim) const = 0;
  // Computes while everything claimed is held. Thread-safe.
  virtual Status compute_held(KernelContext& context) const = 0;

  // Both, for callers that cannot park a kernel: it blocks the thread.
  Status compute(KernelContext& context) const final;
};

// The variable of an input; errors of handle_input().
inline Result<Variable*> variable_input(const KernelContext& context,
                                        int input) {
  return handle_input<Variable>(context, input);
}

// Adds the variable of an input to the claim.
inline Status claim_variable(const KernelContext& context, int input,
                             StateLock::Mode mode, StateClaim& claim) {
  TAGFLOW_ASSIGN(Variable * variable, variable_input(context, input));
  claim.add(variable->lock(), mode, *variable);
  return {};
}

// A kernel that changes a variable: it computes inside the step's gate, which
// the answer of the step closes (devices/commit_gate.h).
class UpdateKernel : public StateKernel {
 public:
  Status compute_held(KernelContext& context) const final;

 protected:
  virtual Status update(KernelContext& context) const = 0;
};

// Cancelled: the step was answered before.
Status too_late(const KernelContext& context);

}  // namespace tagflow::devices
