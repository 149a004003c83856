// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_special_function_kernels(KernelRegistry& registry);

void register_special_kernels(KernelRegistry& registry) {
  register_special_function_kernels(registry);
}

}  // namespace tagflow::devices
