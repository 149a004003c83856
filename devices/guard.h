// How kernels are called: whatever they throw is the error of their step.
#pragma once

#include <optional>

#include "devices/state/state_kernel.h"
#include "graph/fault.h"

namespace tagflow::devices {

using tagflow::current_fault;
using tagflow::guarded;

// kernel.compute(context); what it throws as its status, "[Op] what". Throws
// nothing but abi::__forced_unwind, see current_fault(). Thread-safe.
Status run_kernel(const Kernel& kernel, KernelContext& context);

// kernel.compute_held(context), guarded as above, with all that it claims; then
// `claim` is let go of. Nothing where it cannot have all now: `claim` says what
// to wait for. A claim that is not empty is one that was waited for.
// Thread-safe.
std::optional<Status> try_state_kernel(const StateKernel& kernel,
                                       KernelContext& context,
                                       StateClaim& claim);

// kernel.try_compute(context), guarded as above. Thread-safe.
std::optional<Status> try_async_kernel(const AsyncKernel& kernel,
                                       KernelContext& context);

// kernel.cost(context); unknown where that throws.
double cost_of(const Kernel& kernel, const KernelContext& context);

// kernel.compute_async(context, done), where `done` is called with what that
// throws, unless it was called already, and never twice. REQUIRES: `done` does
// not throw. Throws as run_kernel() does. Thread-safe.
void run_kernel_async(const AsyncKernel& kernel, KernelContext& context,
                      Completion done);

}  // namespace tagflow::devices
