// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_array_shape_kernels(KernelRegistry& registry);   // shape.cpp
void register_array_fill_kernels(KernelRegistry& registry);    // fill.cpp
void register_array_join_kernels(KernelRegistry& registry);    // join.cpp
void register_array_split_kernels(KernelRegistry& registry);   // split.cpp
void register_array_slice_kernels(KernelRegistry& registry);   // slice.cpp
void register_array_stitch_kernels(KernelRegistry& registry);  // stitch.cpp
void register_array_gather_kernels(KernelRegistry& registry);  // gather.cpp
void register_array_transpose_kernels(KernelRegistry& registry);
void register_array_reverse_kernels(KernelRegistry& registry);  // reverse.cpp
void register_array_pad_kernels(KernelRegistry& registry);      // pad.cpp
void register_array_block_kernels(KernelRegistry& registry);    // block.cpp
void register_array_format_kernels(KernelRegistry& registry);   // format.cpp
void register_array_diag_kernels(KernelRegistry& registry);     // diag.cpp
void register_array_one_hot_kernels(KernelRegistry& registry);  // one_hot.cpp
void register_array_update_kernels(KernelRegistry& registry);   // update.cpp

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
  register_array_update_kernels(registry);
}

}  // namespace tagflow::devices
