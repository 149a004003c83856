#include "devices/cpu/kernels.h"

#include "devices/checkpoint/kernels.h"

namespace tagflow::devices {

void register_cpu_kernels(KernelRegistry& registry) {
  register_control_flow_kernels(registry);
  register_elementwise_kernels(registry);
  register_array_kernels(registry);
  register_reduction_kernels(registry);
  register_dense_kernels(registry);
  register_einsum_kernels(registry);
  register_row_layer_kernels(registry);
  register_packed_weights_kernels(registry);
  register_product_sum_kernels(registry);
  register_container_kernels(registry);
  register_state_kernels(registry);
  register_checkpoint_kernels(registry);
  register_file_kernels(registry);
  register_summary_kernels(registry);
  register_further_kernels(registry);
}

}  // namespace tagflow::devices
