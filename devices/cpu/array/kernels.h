// Private to devices/cpu/array/: the registering functions by theme.
#pragma once

#include "devices/cpu/array/args.h"
#include "devices/cpu/array/copy.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

void register_array_shape_kernels(KernelRegistry& registry);
void register_array_fill_kernels(KernelRegistry& registry);
void register_array_join_kernels(KernelRegistry& registry);
void register_array_split_kernels(KernelRegistry& registry);
void register_array_slice_kernels(KernelRegistry& registry);
void register_array_stitch_kernels(KernelRegistry& registry);
void register_array_gather_kernels(KernelRegistry& registry);
void register_array_transpose_kernels(KernelRegistry& registry);
void register_array_reverse_kernels(KernelRegistry& registry);
void register_array_pad_kernels(KernelRegistry& registry);
void register_array_block_kernels(KernelRegistry& registry);
void register_array_format_kernels(KernelRegistry& registry);
void register_array_diag_kernels(KernelRegistry& registry);
void register_array_one_hot_kernels(KernelRegistry& registry);
void register_array_count_kernels(KernelRegistry& registry);
void register_array_update_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
