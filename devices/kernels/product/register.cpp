// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_dense_kernels(KernelRegistry& registry);      // dense.cpp
void register_einsum_kernels(KernelRegistry& registry);     // einsum.cpp
void register_row_layer_kernels(KernelRegistry& registry);  // layer_rows.cpp
void register_packed_weights_kernels(KernelRegistry& registry);
void register_product_sum_kernels(KernelRegistry& registry);

void register_product_kernels(KernelRegistry& registry) {
  register_dense_kernels(registry);
  register_einsum_kernels(registry);
  register_row_layer_kernels(registry);
  register_packed_weights_kernels(registry);
  register_product_sum_kernels(registry);
}

}  // namespace tagflow::devices
