// The parts of register_gradient_kernels(), one per file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

void register_unary_gradient_kernels(KernelRegistry& registry);
void register_gradient_list_kernels(KernelRegistry& registry);
void register_gradient_list_row_kernels(KernelRegistry& registry);
void register_gradient_list_batch_kernels(KernelRegistry& registry);
void register_persistent_stack_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
