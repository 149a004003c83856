// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_unary_gradient_kernels(KernelRegistry& registry);  // unary.cpp
void register_gradient_list_kernels(KernelRegistry& registry);   // list_ops.cpp
void register_gradient_list_row_kernels(KernelRegistry& registry);
void register_gradient_list_batch_kernels(KernelRegistry& registry);
void register_persistent_stack_kernels(KernelRegistry& registry);

void register_gradient_kernels(KernelRegistry& registry) {
  register_unary_gradient_kernels(registry);
  register_gradient_list_kernels(registry);
  register_gradient_list_row_kernels(registry);
  register_gradient_list_batch_kernels(registry);
  register_persistent_stack_kernels(registry);
}

}  // namespace tagflow::devices
