#include "autodiff/rule.h"

#include <numeric>

#include "autodiff/region.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

// Nodes of a gradient are on the device of the node that it is the gradient of.
RuleContext::RuleContext(Region& region, const Node& node,
                         std::vector<Gradient> grads, std::vector<bool> wanted,
                         size_t first_input)
    : region_(region),
      node_(node),
      first_input_(first_input),
      scope_(region.scope()
                 .sub_scope(node.name() + "_grad")
                 .with_device(node.device())),
      grads_(std::move(grads)),
      wanted_(std::move(wanted)),
      results_(size_t(node.num_inputs()) - first_input) {}

int RuleContext::num_inputs() const { return int(results_.size()); }
int RuleContext::num_outputs() const { return int(grads_.size()); }

DataType RuleContext::input_dtype(int input) const {
  return remove_ref(node_.input_dtypes()[first_input_ + size_t(input)]);
}

// --- What comes in ----------------------------------------------------------

bool RuleContext::has_grad(int port) const {
  return grads_[size_t(port)].valid();
}

Output RuleContext::grad(int port) {
  Gradient& grad = grads_[size_t(port)];
  const graph::Endpoint output{const_cast<Node*>(&node_), port};
  if (!grad.valid()) grad = {region_.zeros(output)};
  grad = {region_.dense(scope_, output, grad)};
  return grad.values;
}

// --- The node's values ------------------------------------------------------

Output RuleContext::input(int input) {
  return region_.value(tensor_of_input(input));
}

Output RuleContext::output(int port) {
  return region_.value({const_cast<Node*>(&node_), port});
}

Output RuleContext::input_shape(int input, DataType dtype) {
  return region_.shape(tensor_of_input(input), dtype);
}

Output RuleContext::output_shape(int port, DataType dtype) {
  return region_.shape({const_cast<Node*>(&node_), port}, dtype);
}

Output RuleContext::forward(std::string_view op,
                            std::vector<graph::Endpoint> inputs, AttrMap attrs,
                            int port) {
  return region_.forward(fmt::format("{}/{}", node_.name(), op), op, inputs,
                         std::move(attrs), port);
}

const PartialShape& RuleContext::known_input_shape(int input) const {
  const graph::Endpoint from = tensor_of_input(input);
  return from.node->output_shape(from.port);
}

const PartialShape& RuleContext::known_output_shape(int port) const {
  return node_.output_shape(port);
}

// --- What goes out ----------------------------------------------------------

void RuleContext::set(int input, Output gradient) {
  set(input, Gradient{gradient});
}

void RuleContext::set(int input, const Gradient& gradient) {
  if (wants(input) && gradient.valid()) results_[size_t(input)] = gradient;
}

void RuleContext::set_slices(int input, Output values, Output indices) {
  if (indices.valid()) set(input, Gradient{values, indices});
}

void RuleContext::set_broadcast(int input, Output gradient) {
  if (!wants(input) || !gradient.valid()) return;
  // A sum of flows of TensorArrays.
  if (region_.analysis().is_container(node_.inputs()[size_t(input)]))
    return set(input, gradient);
  const PartialShape& from = known_input_shape(input);
  const PartialShape& to = known_output_shape();
  if (from.fully_known() && to.fully_known()) {
    std::vector<int64_t> axes;
    const int more = to.rank() - from.rank();
    bool keeps_rank = more == 0;
    for (int i = 0; i < to.rank(); ++i)
      if (i < more || (from.dim(i - more) == 1 && to.dim(i) != 1))
        axes.push_back(i);
    if (axes.empty()) return set(input, gradient);
    const Output sum =
        ops::reduce_sum(scope_, gradient, ints(axes), {keeps_rank});
    return set(input, keeps_rank || from.rank() + int(axes.size()) == to.rank()
                          ? sum
                          : ops::reshape(scope_, sum, input_shape(input)));
  }
  if (from.has_rank() && from.rank() == 0)
    return set(input, to.has_rank() && to.rank() == 0
                          ? gradient
                          : ops::reduce_sum(scope_, gradient));
  const Output shape = input_shape(input);
  const Output axes =
      ops::broadcast_gradient_args(scope_, shape, output_shape()).r0;
  set(input,
      ops::reshape(scope_, ops::reduce_sum(scope_, gradient, axes), shape));
}

// --- Helpers ----------------------------------------------------------------

Output RuleContext::conj(Output x) const {
  return is_complex(x.dtype()) ? Output(scope_.op("Conj", {x})) : x;
}

Output RuleContext::scalar(double value, Output like) const {
  if (!scope_.ok() || !like.valid()) return {};
  const DataType dtype = remove_ref(like.dtype());
  if (is_complex(dtype))
    return ops::cast(scope_, region_.constant(Tensor::scalar(value)), dtype);
  auto tensor = graph::weak_to_dtype(Tensor::scalar(value), dtype);
  if (tensor.ok()) return region_.constant(*std::move(tensor));
  scope_.fail(std::move(tensor).status());
  return {};
}

Output RuleContext::ints(const std::vector<int64_t>& values) const {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return region_.constant(
      Tensor::of<int32_t>({int64_t(narrow.size())}, narrow));
}

Output RuleContext::zeros_like_input(int input) {
  return region_.zeros(tensor_of_input(input));
}

void RuleContext::fail(std::string why) const {
  scope_.fail(error(Code::kUnimplemented,
                    "[gradients] [{}] node \"{}\" has no gradient: {}",
                    node_.op(), node_.name(), why));
}

}  // namespace tagflow::autodiff
