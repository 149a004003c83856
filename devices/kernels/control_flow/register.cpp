// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_plain_control_flow_kernels(KernelRegistry& registry);

void register_control_flow_kernels(KernelRegistry& registry) {
  register_plain_control_flow_kernels(registry);
}

}  // namespace tagflow::devices
