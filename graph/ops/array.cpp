#include "graph/op_registry.h"
#include "graph/ops/array_ops.h"

namespace tagflow::graph {

void register_array_ops(OpRegistry& registry) {
  register_array_basic_ops(registry);
  register_array_join_ops(registry);
  register_array_slice_ops(registry);
  register_array_gather_ops(registry);
  register_array_layout_ops(registry);
  register_array_diag_ops(registry);
  register_array_indices_ops(registry);
  register_array_update_ops(registry);
}

}  // namespace tagflow::graph
