// The CPU kernels, one registering function per family and file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

// All of the below.
void register_cpu_kernels(KernelRegistry& registry);

// cpu/control_flow.cpp: Const, Identity, NoOp, Assert, Print, ...
void register_control_flow_kernels(KernelRegistry& registry);
// cpu/elementwise_*.cpp
void register_elementwise_kernels(KernelRegistry& registry);
// cpu/array_*.cpp
void register_array_kernels(KernelRegistry& registry);
// cpu/reduction_*.cpp and segment ops
void register_reduction_kernels(KernelRegistry& registry);
// cpu/dense*.cpp: matrix products
void register_dense_kernels(KernelRegistry& registry);
// cpu/nn_*.cpp
void register_nn_kernels(KernelRegistry& registry);
// cpu/random_*.cpp
void register_random_kernels(KernelRegistry& registry);
// cpu/layer_rows.cpp
void register_row_layer_kernels(KernelRegistry& registry);
// cpu/layer_window.cpp
void register_window_layer_kernels(KernelRegistry& registry);
// cpu/packed_weights.cpp
void register_packed_weights_kernels(KernelRegistry& registry);
// cpu/product_sum_ops.cpp
void register_product_sum_kernels(KernelRegistry& registry);
// cpu/stack*.cpp, tensor_array*.cpp, tensor_list*.cpp, optional.cpp
void register_container_kernels(KernelRegistry& registry);
void register_state_kernels(KernelRegistry& registry);
// cpu/sparse_*.cpp: sparse and ragged tensors
void register_sparse_kernels(KernelRegistry& registry);
// cpu/linalg_*.cpp: decompositions of matrices, Cross
void register_linalg_kernels(KernelRegistry& registry);
// cpu/recurrent_*.cpp: fused LSTM and GRU cells
void register_recurrent_kernels(KernelRegistry& registry);
// cpu/text_*.cpp: regular expressions, hashes
void register_text_kernels(KernelRegistry& registry);
// cpu/file_*.cpp: ReadFile, WriteFile, MatchingFiles
void register_file_kernels(KernelRegistry& registry);
// cpu/summary.cpp
void register_summary_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
