// Definitions of the built-in ops: one registration function for each family.
#pragma once

namespace tagflow::graph {

class OpRegistry;

// Registers all families below.
void register_ops(OpRegistry& registry);

void register_control_flow_ops(OpRegistry& registry);
void register_elementwise_ops(OpRegistry& registry);
void register_special_ops(OpRegistry& registry);
void register_gradient_ops(OpRegistry& registry);
void register_array_ops(OpRegistry& registry);
void register_order_ops(OpRegistry& registry);
void register_reduction_ops(OpRegistry& registry);
void register_segment_ops(OpRegistry& registry);
void register_product_ops(OpRegistry& registry);
void register_linalg_ops(OpRegistry& registry);
void register_activation_ops(OpRegistry& registry);
void register_convolution_ops(OpRegistry& registry);
void register_pooling_ops(OpRegistry& registry);
void register_normalization_ops(OpRegistry& registry);
void register_image_ops(OpRegistry& registry);
void register_recurrent_ops(OpRegistry& registry);
void register_random_ops(OpRegistry& registry);
void register_containers_ops(OpRegistry& registry);
void register_variable_ops(OpRegistry& registry);
void register_queue_ops(OpRegistry& registry);
void register_coordination_ops(OpRegistry& registry);
void register_table_ops(OpRegistry& registry);
void register_training_ops(OpRegistry& registry);
void register_sparse_ops(OpRegistry& registry);
void register_text_ops(OpRegistry& registry);
void register_file_ops(OpRegistry& registry);
void register_summary_ops(OpRegistry& registry);

}  // namespace tagflow::graph
