#include "autodiff/node_context.h"

#include "autodiff/region.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/known_value.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// Rules read indices, axes and shapes that are known when the derivative is
// made.
void fix_known_inputs(graph::Graph& graph, const Node& node) {
  for (const graph::Endpoint& input : node.inputs()) {
    const Node* maker = graph::known_maker(input);
    if (maker == nullptr || maker->op() != "Const" ||
        !is_integer(maker->output_dtypes()[0]) ||
        maker->attrs().contains(graph::kFixedValueAttr))
      continue;
    graph.set_attr(const_cast<Node*>(maker),
                   std::string(graph::kFixedValueAttr), true);
  }
}

}  // namespace

// A derivative is on the device of its node.
NodeContext::NodeContext(Region& region, const Node& node,
                         std::string_view name, size_t first_input)
    : region_(region),
      node_(node),
      first_input_(first_input),
      scope_(region.scope().sub_scope(name).with_device(node.device())) {
  fix_known_inputs(region.analysis().graph(), node);
}

graph::Endpoint NodeContext::output_endpoint(int port) const {
  return {const_cast<Node*>(&node_), port};
}

int NodeContext::num_inputs() const {
  return node_.num_inputs() - int(first_input_);
}

int NodeContext::num_outputs() const {
  return first_input_ == 0 ? node_.num_outputs() : int(first_input_);
}

DataType NodeContext::input_dtype(int input) const {
  return remove_ref(node_.input_dtypes()[first_input_ + size_t(input)]);
}

bool NodeContext::is_container(int input) const {
  return region_.analysis().is_container(input_endpoint(input));
}

// --- The node's values ------------------------------------------------------

Output NodeContext::input(int input) {
  return region_.value(input_endpoint(input));
}

Output NodeContext::output(int port) {
  return region_.value(output_endpoint(port));
}

Output NodeContext::input_shape(int input, DataType dtype) {
  return region_.shape(input_endpoint(input), dtype);
}

Output NodeContext::output_shape(int port, DataType dtype) {
  return region_.shape(output_endpoint(port), dtype);
}

Output NodeContext::forward(std::string_view op,
                            std::vector<graph::Endpoint> inputs, AttrMap attrs,
                            int port) {
  return region_.forward(fmt::format("{}/{}", node_.name(), op), op, inputs,
                         std::move(attrs), port);
}

const PartialShape& NodeContext::known_input_shape(int input) const {
  const graph::Endpoint& from = input_endpoint(input);
  return from.node->output_shape(from.port);
}

const PartialShape& NodeContext::known_output_shape(int port) const {
  return node_.output_shape(port);
}

// --- Helpers ----------------------------------------------------------------

Output NodeContext::conj(Output x) const {
  return is_complex(x.dtype()) ? Output(scope_.op("Conj", {x})) : x;
}

Output NodeContext::scalar(double value, Output like) const {
  if (!scope_.ok() || !like.valid()) return {};
  const DataType dtype = remove_ref(like.dtype());
  if (is_complex(dtype))
    return ops::cast(scope_, region_.constant(Tensor::scalar(value)), dtype);
  auto tensor = graph::weak_to_dtype(Tensor::scalar(value), dtype);
  if (tensor.ok()) return region_.constant(*std::move(tensor));
  scope_.fail(std::move(tensor).status());
  return {};
}

Output NodeContext::ints(const std::vector<int64_t>& values) const {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return region_.constant(
      Tensor::of<int32_t>({int64_t(narrow.size())}, narrow));
}

Output NodeContext::zeros_like_input(int input) {
  return region_.zeros(input_endpoint(input));
}

void NodeContext::fail(std::string why) const {
  scope_.fail(error(Code::kUnimplemented,
                    "[gradients] [{}] node \"{}\" has no gradient: {}",
                    node_.op(), node_.name(), why));
}

}  // namespace tagflow::autodiff
