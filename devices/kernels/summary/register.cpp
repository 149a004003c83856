// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_scalar_summary_kernels(KernelRegistry& registry);  // summary.cpp

void register_summary_kernels(KernelRegistry& registry) {
  register_scalar_summary_kernels(registry);
}

}  // namespace tagflow::devices
