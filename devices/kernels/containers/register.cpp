// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_stack_kernels(KernelRegistry& registry);  // stack.cpp
void register_tensor_array_kernels(KernelRegistry& registry);
void register_tensor_array_row_kernels(KernelRegistry& registry);
void register_tensor_list_kernels(KernelRegistry& registry);
void register_tensor_list_row_kernels(KernelRegistry& registry);
void register_tensor_list_join_kernels(KernelRegistry& registry);
void register_tensor_map_kernels(KernelRegistry& registry);  // tensor_map.cpp
void register_optional_kernels(KernelRegistry& registry);    // optional.cpp
void register_variant_arithmetic_kernels(KernelRegistry& registry);

void register_containers_kernels(KernelRegistry& registry) {
  register_stack_kernels(registry);
  register_tensor_array_kernels(registry);
  register_tensor_array_row_kernels(registry);
  register_tensor_list_kernels(registry);
  register_tensor_list_row_kernels(registry);
  register_tensor_list_join_kernels(registry);
  register_tensor_map_kernels(registry);
  register_optional_kernels(registry);
  register_variant_arithmetic_kernels(registry);
}

}  // namespace tagflow::devices
