#include "devices/cpu/kernels.h"
#include "devices/cpu/nn/kernels.h"

namespace tagflow::devices {

void register_nn_kernels(KernelRegistry& registry) {
  register_activation_kernels(registry);
  register_softmax_kernels(registry);
  register_loss_kernels(registry);
  register_bias_kernels(registry);
  register_in_top_k_kernels(registry);
  register_conv_kernels(registry);
  register_depthwise_conv_kernels(registry);
  register_max_pool_kernels(registry);
  register_max_pool_grad_kernels(registry);
  register_average_pool_kernels(registry);
  register_batch_norm_kernels(registry);
  register_lrn_kernels(registry);
  register_resize_kernels(registry);
}

}  // namespace tagflow::devices
