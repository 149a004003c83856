#include "graph/analysis/node_queries.h"

#include <algorithm>

#include "graph/analysis/class_labels.h"
#include "graph/known_value.h"

namespace tagflow::graph {

bool reads_reference(const Node& node) {
  return std::ranges::any_of(node.inputs(), [](const Endpoint& input) {
    return input.node != nullptr &&
           is_ref(input.node->output_dtypes()[size_t(input.port)]);
  });
}

bool is_pure(const Node& node) {
  if (node.num_outputs() == 0 || node.op_def().is_stateful) return false;
  if (node.is_switch() || node.is_merge() || node.is_enter() ||
      node.is_exit() || node.is_next_iteration() || node.is_loop_cond() ||
      node.is_control_trigger())
    return false;
  if (node.op().starts_with("Placeholder") || node.op().starts_with('_'))
    return false;
  // The object behind a handle or a reference may change meanwhile.
  const auto is_state = [](DataType type) {
    return is_ref(type) || type == DataType::kResource;
  };
  return !reads_reference(node) &&
         std::ranges::none_of(node.input_dtypes(), is_state) &&
         std::ranges::none_of(node.output_dtypes(), is_state) &&
         node.op_def().is_registered;
}

bool is_plain_identity(const Node& node) {
  if (!node.control_inputs().empty() || node.num_inputs() != 1) return false;
  const OpDef& op = node.op_def();
  if ((!op.forwards && op.name != "IdentityN") || op.is_stateful ||
      node.is_loop_cond() || op.name == "PlaceholderWithDefault")
    return false;
  return !reads_reference(node) && !is_ref(node.output_dtypes()[0]);
}

bool is_elementwise(const Node& node) {
  return node.op_def().is_fusible && is_pure(node);
}

bool has_one_known_shape(const Node& node) {
  const auto shape_of = [](const Endpoint& input) -> const PartialShape& {
    return input.node->output_shape(input.port);
  };
  const auto inputs = node.inputs();
  return !inputs.empty() && shape_of(inputs[0]).fully_known() &&
         std::ranges::all_of(inputs, [&](const Endpoint& input) {
           return shape_of(input) == shape_of(inputs[0]);
         });
}

bool is_last_axis(const Endpoint& axis, int rank) {
  const Tensor* value = known_constant(axis);
  if (value == nullptr || value->num_elements() != 1) return false;
  const int64_t at = value->dtype() == DataType::kInt32
                         ? value->data<int32_t>()[0]
                         : value->data<int64_t>()[0];
  return at == -1 || at == rank - 1;
}

bool is_set(const Node& node, std::string_view flag) {
  const auto value = node.attr<bool>(flag);
  return value.ok() && *value;
}

bool is_loop_constant(const Node& node) {
  return node.is_constant_enter() && node.control_inputs().empty();
}

bool control_tells_deadness(const Endpoint& source) {
  return !source.node->is_switch() && !source.node->op().starts_with("_Call");
}

bool hides_deadness(const Node& node) {
  return node.op() == "_Recv" || node.op().starts_with("_Call");
}

std::span<const std::string> classes_of(const Node& node) {
  const auto labels = class_labels(node);
  return labels.ok() ? *labels : std::span<const std::string>();
}

bool has_same_constraints(const Node& a, const Node& b) {
  return a.device() == b.device() &&
         std::ranges::equal(classes_of(a), classes_of(b));
}

bool is_unconstrained(const Node& node) {
  return node.device().empty() && classes_of(node).empty();
}

}  // namespace tagflow::graph
