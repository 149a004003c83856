#include "devices/cpu/gradient/kernels.h"

#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void register_gradient_kernels(KernelRegistry& registry) {
  register_unary_gradient_kernels(registry);
  register_gradient_list_kernels(registry);
  register_gradient_list_row_kernels(registry);
  register_gradient_list_batch_kernels(registry);
  register_persistent_stack_kernels(registry);
}

}  // namespace tagflow::devices
