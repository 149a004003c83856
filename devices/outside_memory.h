// Counts what the outputs of kernels keep outside of their buffers.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

// Charges strings and variants among the outputs of a kernel that has just
// succeeded: Note [Memory outside of buffers] in graph/allocator.h. Strings
// that are in memory without a limit, and that nobody else holds, are moved to
// the context's. ResourceExhausted if that would exceed its limit.
// REQUIRES: the context's memory counts; its inputs and outputs are still
// there.
Status count_outside(KernelContext& context);

}  // namespace tagflow::devices
