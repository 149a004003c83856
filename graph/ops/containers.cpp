// Ops of stacks, tensor arrays, tensor lists and optionals: registration, and
// helpers of their shape functions.
#include "graph/op_registry.h"
#include "graph/ops/containers_ops.h"

namespace tagflow::graph {

Result<PartialShape> element_shape_input(const ShapeContext& c, int i) {
  const PartialShape& input = c.input(i);
  if (!input.has_rank()) return PartialShape();
  if (input.rank() > 1)
    return c.fail(fmt::format("element_shape must be a vector or -1, not {}",
                              input.to_string()));
  if (input.rank() == 1) return c.constant_as_shape(i);
  const auto value = constant_index(c, i);
  if (value && *value != -1)
    return c.fail(fmt::format(
        "element_shape must be a vector, or -1 for any shape, not {}", *value));
  return PartialShape();
}

void register_containers_ops(OpRegistry& registry) {
  register_containers_stack_ops(registry);
  register_containers_tensor_array_ops(registry);
  register_containers_tensor_list_ops(registry);
  register_containers_tensor_map_ops(registry);
  register_containers_optional_ops(registry);
}

}  // namespace tagflow::graph
