// Counts what the outputs of kernels, and the elements of state, keep outside
// of their buffers.
#pragma once

#include <span>

#include "devices/kernel.h"

namespace tagflow::devices {

// Does what count_kept() says. REQUIRES: the context's memory counts.
Status copy_kept_strings(const KernelContext& context,
                         std::span<Tensor> values);

// Charges strings and variants among the outputs of a kernel that has just
// succeeded: Note [Memory outside of buffers] in graph/allocator.h. Strings
// that are in memory without a limit, and that nobody else holds, are moved to
// the context's. ResourceExhausted if that would exceed its limit; what the
// kernel has taken out of a state is then lost.
// REQUIRES: the context's memory counts; its inputs and outputs are still
// there.
Status count_outside(KernelContext& context);

// Replaces strings in memory without a limit by copies in the context's, if
// that counts: for values that state keeps, and gives away later. The kernel
// that takes them out then needs no memory, which it could lack when the state
// has lost them. ResourceExhausted if that would exceed the limit; may throw.
// Some values are copies then, which the caller frees.
inline Status count_kept(const KernelContext& context,
                         std::span<Tensor> values) {
  if (!context.allocator().counts_outside()) [[likely]]
    return {};
  return copy_kept_strings(context, values);
}

}  // namespace tagflow::devices
