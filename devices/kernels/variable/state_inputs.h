// Helpers for all kernels of state, also those in kernels/queue/, training/,
// table/ and coordination/.
#pragma once

#include <memory>
#include <string>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/state/state_kernel.h"

namespace tagflow::devices {

// Adds a kernel for both versions of an op: for references and for handles.
template <class K>
void add_both(KernelRegistry& registry, const std::string& op) {
  registry.add<K>(op);
  registry.add<K>(op + "V2");
}

// A kernel whose attribute timeout_ms must be -1: InvalidArgument for other
// values, which no implementation of the op supports.
template <class K>
Result<std::unique_ptr<Kernel>> make_untimed(const KernelInfo& info) {
  const auto timeout = attr_of<int64_t>(info, "timeout_ms");
  if (timeout != -1)
    return invalid_argument(
        "[{}] node \"{}\": timeout_ms must be -1, not {}: a run has a time-out",
        info.node().op(), info.name(), timeout);
  return std::unique_ptr<Kernel>(std::make_unique<K>(info));
}

// Passes the kernel's variable on as its output if the op takes and returns
// a reference; does nothing if it takes a handle.
inline void pass_reference_on(KernelContext& context) {
  if (context.num_outputs() > 0) context.set_output(0, context.input(0));
}

// InvalidArgument unless the variable is of that type.
Status check_type(const KernelContext& context, const Variable& variable,
                  DataType wanted);

// The variable of an input, which must be of that type and have a value.
// REQUIRES: its lock is held.
Result<Variable*> initialized_variable(const KernelContext& context, int input,
                                       DataType wanted);

// The approximate bytes of a slice of the variable of an input, past the first
// `depth` dimensions: a hint, for costs.
double slice_bytes_hint(const KernelContext& context, int input, int depth);

}  // namespace tagflow::devices
