#include "graph/ops/nn_ops.h"
#include "graph/ops/ops.h"

namespace tagflow::graph {

void register_nn_ops(OpRegistry& registry) {
  register_dense_ops(registry);
  register_activation_ops(registry);
  register_conv_ops(registry);
  register_pool_ops(registry);
  register_norm_ops(registry);
  register_einsum_ops(registry);
}

}  // namespace tagflow::graph
