// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_variable_value_kernels(KernelRegistry& registry);  // variable.cpp
void register_variable_life_kernels(KernelRegistry& registry);
void register_dense_update_kernels(KernelRegistry& registry);    // dense.cpp
void register_state_gather_kernels(KernelRegistry& registry);    // gather.cpp
void register_state_scatter_kernels(KernelRegistry& registry);   // scatter.cpp
void register_state_slice_kernels(KernelRegistry& registry);     // slice.cpp
void register_session_tensor_kernels(KernelRegistry& registry);  // session.cpp
void register_checkpoint_state_kernels(KernelRegistry& registry);

void register_variable_kernels(KernelRegistry& registry) {
  register_variable_value_kernels(registry);
  register_variable_life_kernels(registry);
  register_dense_update_kernels(registry);
  register_state_gather_kernels(registry);
  register_state_scatter_kernels(registry);
  register_state_slice_kernels(registry);
  register_session_tensor_kernels(registry);
  register_checkpoint_state_kernels(registry);
}

}  // namespace tagflow::devices
