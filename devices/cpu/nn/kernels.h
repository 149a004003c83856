// The parts of register_nn_kernels(), one per file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

void register_activation_kernels(KernelRegistry& registry);
void register_softmax_kernels(KernelRegistry& registry);
void register_loss_kernels(KernelRegistry& registry);
void register_bias_kernels(KernelRegistry& registry);
void register_in_top_k_kernels(KernelRegistry& registry);
void register_conv_kernels(KernelRegistry& registry);
void register_depthwise_conv_kernels(KernelRegistry& registry);
void register_max_pool_kernels(KernelRegistry& registry);
void register_max_pool_grad_kernels(KernelRegistry& registry);
void register_average_pool_kernels(KernelRegistry& registry);
void register_batch_norm_kernels(KernelRegistry& registry);
void register_lrn_kernels(KernelRegistry& registry);
void register_resize_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
