// The parts of register_nn_ops(), one per file.
#pragma once

namespace tagflow::graph {

class OpRegistry;

void register_dense_ops(OpRegistry& registry);       // nn_dense.cpp
void register_activation_ops(OpRegistry& registry);  // nn_activation.cpp
void register_conv_ops(OpRegistry& registry);        // nn_conv.cpp
void register_pool_ops(OpRegistry& registry);        // nn_pool.cpp
void register_norm_ops(OpRegistry& registry);        // nn_norm.cpp
void register_einsum_ops(OpRegistry& registry);      // nn_einsum.cpp

}  // namespace tagflow::graph
