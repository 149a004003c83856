// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_unsorted_segment_kernels(KernelRegistry& registry);
void register_sorted_segment_kernels(KernelRegistry& registry);  // sorted.cpp
void register_sparse_segment_kernels(KernelRegistry& registry);  // sparse.cpp

void register_segment_kernels(KernelRegistry& registry) {
  register_unsorted_segment_kernels(registry);
  register_sorted_segment_kernels(registry);
  register_sparse_segment_kernels(registry);
}

}  // namespace tagflow::devices
