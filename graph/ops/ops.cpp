#include "graph/ops/ops.h"

namespace tagflow::graph {

void register_ops(OpRegistry& registry) {
  register_control_flow_ops(registry);
  register_functional_ops(registry);
  register_math_ops(registry);
  register_array_ops(registry);
  register_reduction_ops(registry);
  register_nn_ops(registry);
  register_random_ops(registry);
  register_fused_ops(registry);
  register_container_ops(registry);
  register_state_ops(registry);
  register_checkpoint_ops(registry);
  register_sparse_ops(registry);
  register_linalg_ops(registry);
  register_recurrent_ops(registry);
  register_text_ops(registry);
  register_file_ops(registry);
  register_summary_ops(registry);
}

}  // namespace tagflow::graph
