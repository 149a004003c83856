// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_training_rule_kernels(KernelRegistry& registry);  // rules.cpp

void register_training_kernels(KernelRegistry& registry) {
  register_training_rule_kernels(registry);
}

}  // namespace tagflow::devices
