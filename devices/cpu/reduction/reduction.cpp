#include "devices/cpu/kernels.h"
#include "devices/cpu/reduction/kernel.h"

namespace tagflow::devices {

void register_reduction_kernels(KernelRegistry& registry) {
  register_reduction_sum_kernels(registry);
  register_reduction_product_kernels(registry);
  register_reduction_extreme_kernels(registry);
  register_arg_reduction_kernels(registry);
  register_logsumexp_kernels(registry);
  register_sorted_segment_kernels(registry);
  register_unsorted_segment_kernels(registry);
  register_sparse_segment_kernels(registry);
}

}  // namespace tagflow::devices
