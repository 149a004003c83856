// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_batch_norm_kernels(KernelRegistry& registry);  // batch_norm.cpp
void register_lrn_kernels(KernelRegistry& registry);         // lrn.cpp

void register_normalization_kernels(KernelRegistry& registry) {
  register_batch_norm_kernels(registry);
  register_lrn_kernels(registry);
}

}  // namespace tagflow::devices
