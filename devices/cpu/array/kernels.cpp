#include "devices/cpu/array/kernels.h"

#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void register_array_kernels(KernelRegistry& registry) {
  register_array_shape_kernels(registry);
  register_array_fill_kernels(registry);
  register_array_join_kernels(registry);
  register_array_split_kernels(registry);
  register_array_slice_kernels(registry);
  register_array_stitch_kernels(registry);
  register_array_gather_kernels(registry);
  register_array_transpose_kernels(registry);
  register_array_reverse_kernels(registry);
  register_array_pad_kernels(registry);
  register_array_block_kernels(registry);
  register_array_format_kernels(registry);
  register_array_diag_kernels(registry);
  register_array_one_hot_kernels(registry);
  register_array_count_kernels(registry);
  register_array_update_kernels(registry);
}

}  // namespace tagflow::devices
