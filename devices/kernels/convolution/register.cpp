// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_conv_kernels(KernelRegistry& registry);  // conv.cpp
void register_depthwise_conv_kernels(KernelRegistry& registry);
void register_window_layer_kernels(KernelRegistry& registry);  // layer.cpp

void register_convolution_kernels(KernelRegistry& registry) {
  register_conv_kernels(registry);
  register_depthwise_conv_kernels(registry);
  register_window_layer_kernels(registry);
}

}  // namespace tagflow::devices
