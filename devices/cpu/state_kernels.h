// Private to the kernels of state: the registering functions by theme, and what
// the themes share.
#pragma once

#include "devices/cpu/array_args.h"
#include "devices/kernel_registry.h"
#include "devices/state/state_kernel.h"

namespace tagflow::devices {

void register_variable_kernels(KernelRegistry& registry);
void register_dense_update_kernels(KernelRegistry& registry);

// Whether a kernel's variable travels on as its output: the op takes and gives
// a reference, and none where it takes a handle.
inline void pass_reference_on(KernelContext& context) {
  if (context.num_outputs() > 0) context.set_output(0, context.input(0));
}

// InvalidArgument unless the variable is of that type.
Status check_type(const KernelContext& context, const Variable& variable,
                  DataType wanted);

}  // namespace tagflow::devices
