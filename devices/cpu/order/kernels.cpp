#include "devices/cpu/order/kernels.h"

#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void register_order_kernels(KernelRegistry& registry) {
  register_top_k_kernels(registry);
  register_unique_kernels(registry);
  register_bucket_kernels(registry);
}

}  // namespace tagflow::devices
