// The CPU kernels, one registering function per family and file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

// Calls the functions for basic kernels, and register_further_kernels().
void register_cpu_kernels(KernelRegistry& registry);

// --- Basic kernels ----------------------------------------------------------

// cpu/control_flow.cpp: Const, Identity, NoOp, Assert, Print, ...
void register_control_flow_kernels(KernelRegistry& registry);
// cpu/elementwise/
void register_elementwise_kernels(KernelRegistry& registry);
// cpu/array/
void register_array_kernels(KernelRegistry& registry);
// cpu/reduction/, and cpu/segment/unsorted.cpp
void register_reduction_kernels(KernelRegistry& registry);
// cpu/dense/: matrix products
void register_dense_kernels(KernelRegistry& registry);
void register_einsum_kernels(KernelRegistry& registry);
// cpu/layer/rows.cpp
void register_row_layer_kernels(KernelRegistry& registry);
// cpu/dense/packed_weights.cpp
void register_packed_weights_kernels(KernelRegistry& registry);
// cpu/dense/product_sum_ops.cpp
void register_product_sum_kernels(KernelRegistry& registry);
// cpu/containers/: stacks, TensorArrays, lists, optionals
void register_container_kernels(KernelRegistry& registry);
// cpu/state/: variables, queues
void register_state_kernels(KernelRegistry& registry);
// cpu/file_kernels.cpp: ReadFile, WriteFile, MatchingFiles
void register_file_kernels(KernelRegistry& registry);
// cpu/summary.cpp
void register_summary_kernels(KernelRegistry& registry);

// --- Further kernels --------------------------------------------------------
// CMakeLists.txt lists their folders, which TAGFLOW_KERNELS=basic leaves out.

// Calls the functions below, or has messages say that this build has the basic
// kernels only.
void register_further_kernels(KernelRegistry& registry);

// cpu/nn/ and cpu/convolution/
void register_nn_kernels(KernelRegistry& registry);
// cpu/convolution/layer.cpp
void register_window_layer_kernels(KernelRegistry& registry);
// cpu/random/
void register_random_kernels(KernelRegistry& registry);
// cpu/segment/sorted.cpp
void register_sorted_segment_kernels(KernelRegistry& registry);
// cpu/sparse/: sparse and ragged tensors
void register_sparse_kernels(KernelRegistry& registry);
// cpu/special/: error functions, gamma and Bessel functions
void register_special_kernels(KernelRegistry& registry);
// cpu/gradient/: what is in differentiated graphs only
void register_gradient_kernels(KernelRegistry& registry);
// cpu/training/: one step of an optimizer
void register_training_kernels(KernelRegistry& registry);
// cpu/order/: TopK, Unique, Bucketize, ...
void register_order_kernels(KernelRegistry& registry);
// cpu/lookup/: tables
void register_lookup_kernels(KernelRegistry& registry);
// cpu/coordination/: accumulators, barriers, mutexes, staging areas
void register_coordination_kernels(KernelRegistry& registry);
// cpu/linalg/: decompositions of matrices, Cross
void register_linalg_kernels(KernelRegistry& registry);
// cpu/recurrent/: fused LSTM and GRU cells
void register_recurrent_kernels(KernelRegistry& registry);
// cpu/text/: strings, regular expressions, hashes
void register_text_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
