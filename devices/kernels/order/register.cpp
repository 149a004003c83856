// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_top_k_kernels(KernelRegistry& registry);     // top_k.cpp
void register_unique_kernels(KernelRegistry& registry);    // unique.cpp
void register_bucket_kernels(KernelRegistry& registry);    // bucket.cpp
void register_in_top_k_kernels(KernelRegistry& registry);  // in_top_k.cpp

void register_order_kernels(KernelRegistry& registry) {
  register_top_k_kernels(registry);
  register_unique_kernels(registry);
  register_bucket_kernels(registry);
  register_in_top_k_kernels(registry);
}

}  // namespace tagflow::devices
