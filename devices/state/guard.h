// Calls kernels: an exception becomes an error of their step.
#pragma once

#include <optional>

#include "devices/state/state_kernel.h"
#include "graph/fault.h"

namespace tagflow::devices {

using tagflow::current_fault;
using tagflow::guarded;

// Calls kernel.compute(context); an exception becomes the status "[Op] what".
// Throws nothing but abi::__forced_unwind, see current_fault(). Thread-safe.
Status run_kernel(const Kernel& kernel, KernelContext& context);

// Calls kernel.compute_held(context), guarded as above, while it holds all that
// it claims; then it releases `claim`. Returns nothing if it cannot get all
// now: `claim` is then what to wait for. A claim that is not empty is one that
// was waited for. Thread-safe.
std::optional<Status> try_state_kernel(const StateKernel& kernel,
                                       KernelContext& context,
                                       StateClaim& claim);

// Calls kernel.try_compute(context), guarded as above. Thread-safe.
std::optional<Status> try_async_kernel(const AsyncKernel& kernel,
                                       KernelContext& context);

// kernel.cost(context); unknown if that throws.
double cost_of(const Kernel& kernel, const KernelContext& context);

// Calls kernel.compute_async(context, done). If that throws, `done` is called
// with the error, unless it was called already; it is never called twice.
// REQUIRES: `done` does not throw. Throws as run_kernel() does. Thread-safe.
void run_kernel_async(const AsyncKernel& kernel, KernelContext& context,
                      Completion done);

}  // namespace tagflow::devices
