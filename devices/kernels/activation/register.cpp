// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_pointwise_activation_kernels(KernelRegistry& registry);
void register_softmax_kernels(KernelRegistry& registry);  // softmax.cpp
void register_loss_kernels(KernelRegistry& registry);     // loss.cpp
void register_bias_kernels(KernelRegistry& registry);     // bias.cpp

void register_activation_kernels(KernelRegistry& registry) {
  register_pointwise_activation_kernels(registry);
  register_softmax_kernels(registry);
  register_loss_kernels(registry);
  register_bias_kernels(registry);
}

}  // namespace tagflow::devices
