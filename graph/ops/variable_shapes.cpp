// Helpers of the shape functions of state that outlives a step.
#include "graph/known_value.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

PartialShape variable_shape(const ShapeContext& c, int input) {
  const Node* maker = known_maker(c.node().inputs()[size_t(input)]);
  // The shape of a Placeholder is that of the handle.
  if (maker == nullptr || maker->op().starts_with("Placeholder")) return {};
  const auto it = maker->attrs().find("shape");
  if (it == maker->attrs().end()) return {};
  const auto* shape = it->second.get_if<PartialShape>();
  return shape == nullptr ? PartialShape() : *shape;
}

PartialShape state_shape(const ShapeContext& c, int input) {
  const DataType type = c.node().input_dtypes()[size_t(input)];
  return type == DataType::kResource ? variable_shape(c, input)
                                     : c.input(input);
}

Status handle_reference_shape(ShapeContext& c) {
  c.set_output(0, {2});
  return {};
}

}  // namespace tagflow::graph
