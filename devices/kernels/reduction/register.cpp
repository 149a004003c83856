// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_reduction_sum_kernels(KernelRegistry& registry);  // sum.cpp
void register_reduction_product_kernels(KernelRegistry& registry);
void register_reduction_extreme_kernels(KernelRegistry& registry);
void register_arg_reduction_kernels(KernelRegistry& registry);  // arg.cpp
void register_logsumexp_kernels(KernelRegistry& registry);      // logsumexp.cpp
void register_count_kernels(KernelRegistry& registry);          // count.cpp

void register_reduction_kernels(KernelRegistry& registry) {
  register_reduction_sum_kernels(registry);
  register_reduction_product_kernels(registry);
  register_reduction_extreme_kernels(registry);
  register_arg_reduction_kernels(registry);
  register_logsumexp_kernels(registry);
  register_count_kernels(registry);
}

}  // namespace tagflow::devices
