#include "graph/ops/ops.h"

namespace tagflow::graph {

void register_ops(OpRegistry& registry) {
  register_control_flow_ops(registry);
  register_elementwise_ops(registry);
  register_special_ops(registry);
  register_gradient_ops(registry);
  register_array_ops(registry);
  register_order_ops(registry);
  register_reduction_ops(registry);
  register_segment_ops(registry);
  register_product_ops(registry);
  register_linalg_ops(registry);
  register_activation_ops(registry);
  register_convolution_ops(registry);
  register_pooling_ops(registry);
  register_normalization_ops(registry);
  register_image_ops(registry);
  register_recurrent_ops(registry);
  register_random_ops(registry);
  register_containers_ops(registry);
  register_variable_ops(registry);
  register_queue_ops(registry);
  register_coordination_ops(registry);
  register_table_ops(registry);
  register_training_ops(registry);
  register_sparse_ops(registry);
  register_text_ops(registry);
  register_file_ops(registry);
  register_summary_ops(registry);
}

}  // namespace tagflow::graph
