// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_sparse_layout_kernels(KernelRegistry& registry);   // layout.cpp
void register_sparse_slice_kernels(KernelRegistry& registry);    // slice.cpp
void register_sparse_rows_kernels(KernelRegistry& registry);     // rows.cpp
void register_sparse_sum_kernels(KernelRegistry& registry);      // sum.cpp
void register_sparse_dense_kernels(KernelRegistry& registry);    // dense.cpp
void register_sparse_reduce_kernels(KernelRegistry& registry);   // reduce.cpp
void register_sparse_product_kernels(KernelRegistry& registry);  // product.cpp
void register_sparse_serialize_kernels(KernelRegistry& registry);
void register_sparse_tensors_map_kernels(KernelRegistry& registry);
void register_ragged_kernels(KernelRegistry& registry);  // ragged.cpp
void register_ragged_dense_kernels(KernelRegistry& registry);
void register_ragged_variant_kernels(KernelRegistry& registry);

void register_sparse_kernels(KernelRegistry& registry) {
  register_sparse_layout_kernels(registry);
  register_sparse_slice_kernels(registry);
  register_sparse_rows_kernels(registry);
  register_sparse_sum_kernels(registry);
  register_sparse_dense_kernels(registry);
  register_sparse_reduce_kernels(registry);
  register_sparse_product_kernels(registry);
  register_sparse_serialize_kernels(registry);
  register_sparse_tensors_map_kernels(registry);
  register_ragged_kernels(registry);
  register_ragged_dense_kernels(registry);
  register_ragged_variant_kernels(registry);
}

}  // namespace tagflow::devices
