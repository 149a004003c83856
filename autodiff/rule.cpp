#include "autodiff/rule.h"

#include <numeric>

#include "autodiff/region.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

RuleContext::RuleContext(Region& region, const Node& node,
                         std::string_view name, std::vector<Gradient> grads,
                         std::vector<bool> wanted, size_t first_input)
    : NodeContext(region, node, name, first_input),
      grads_(std::move(grads)),
      wanted_(std::move(wanted)),
      results_(size_t(node.num_inputs()) - first_input) {}

// --- What comes in ----------------------------------------------------------

bool RuleContext::has_grad(int port) const {
  return grads_[size_t(port)].valid();
}

Output RuleContext::grad(int port) {
  Gradient& grad = grads_[size_t(port)];
  const graph::Endpoint output = output_endpoint(port);
  if (!grad.valid()) grad = {region().zeros(output)};
  grad = {region().dense(scope(), output, grad)};
  return grad.values;
}

// --- What goes out ----------------------------------------------------------

void RuleContext::set(int input, Output gradient) {
  set(input, Gradient{gradient});
}

void RuleContext::set(int input, const Gradient& gradient) {
  if (wants(input) && gradient.valid()) results_[size_t(input)] = gradient;
}

// The indices are a value of the node, which may be live on other branches,
// too. They must be as live as the gradient. A control edge from an Identity of
// it ensures that; one from a Switch would not.
void RuleContext::set_slices(int input, Output values, Output indices) {
  if (!wants(input) || !values.valid() || !indices.valid()) return;
  Analysis& analysis = region().analysis();
  if (!analysis.conditions().includes(region().given(),
                                      analysis.live(node()))) {
    values = ops::identity(scope(), values);
    indices =
        ops::identity(scope().with_control_dependencies({values}), indices);
  }
  set(input, Gradient{values, indices});
}

void RuleContext::set_broadcast(int input, Output gradient) {
  if (!wants(input) || !gradient.valid()) return;
  // A sum of flows of TensorArrays.
  if (is_container(input)) return set(input, gradient);
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
        ops::reduce_sum(scope(), gradient, ints(axes), {keeps_rank});
    return set(input, keeps_rank || from.rank() + int(axes.size()) == to.rank()
                          ? sum
                          : ops::reshape(scope(), sum, input_shape(input)));
  }
  if (from.has_rank() && from.rank() == 0)
    return set(input, to.has_rank() && to.rank() == 0
                          ? gradient
                          : ops::reduce_sum(scope(), gradient));
  const Output shape = input_shape(input);
  const Output axes =
      ops::broadcast_gradient_args(scope(), shape, output_shape()).r0;
  set(input,
      ops::reshape(scope(), ops::reduce_sum(scope(), gradient, axes), shape));
}

}  // namespace tagflow::autodiff
