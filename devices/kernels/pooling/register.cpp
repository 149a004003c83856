// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_max_pool_kernels(KernelRegistry& registry);  // max_pool.cpp
void register_max_pool_grad_kernels(KernelRegistry& registry);
void register_average_pool_kernels(KernelRegistry& registry);

void register_pooling_kernels(KernelRegistry& registry) {
  register_max_pool_kernels(registry);
  register_max_pool_grad_kernels(registry);
  register_average_pool_kernels(registry);
}

}  // namespace tagflow::devices
