// With TAGFLOW_KERNELS=all.
#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void register_further_kernels(KernelRegistry& registry) {
  register_nn_kernels(registry);
  register_window_layer_kernels(registry);
  register_random_kernels(registry);
  register_sorted_segment_kernels(registry);
  register_sparse_kernels(registry);
  register_special_kernels(registry);
  register_gradient_kernels(registry);
  register_training_kernels(registry);
  register_order_kernels(registry);
  register_lookup_kernels(registry);
  register_coordination_kernels(registry);
  register_linalg_kernels(registry);
  register_recurrent_kernels(registry);
  register_text_kernels(registry);
}

}  // namespace tagflow::devices
