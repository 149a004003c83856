// The duals of Switch and Merge, and zeros for gradients that a branch lacks.
#include <algorithm>

#include "autodiff/backprop.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

Gradient Backprop::zeros(const Endpoint& tensor, const Gradient& like) {
  if (!like.is_sparse()) return {region_.zeros(tensor, like.values.dtype())};
  // No rows, of the shape of those in the existing gradient.
  const graph::Scope& s = scope();
  const Output shape = region_.shape(tensor);
  const Output rows =
      ops::concat(s,
                  {region_.constant(Tensor::vector<int32_t>({0})),
                   ops::slice(s, shape, {1}, {-1})},
                  0);
  const Output zero = graph::ops::cast(
      s, region_.constant(Tensor::scalar<int32_t>(0)), like.values.dtype());
  Output indices = region_.constant(Tensor::of<int64_t>({0}, {}));
  if (like.indices.dtype() != DataType::kInt64)
    indices = ops::cast(s, indices, like.indices.dtype());
  return {ops::fill(s, rows, zero), indices};
}

std::vector<Gradient> Backprop::switched(const Gradient& gradient,
                                         const Output& predicate, int ports) {
  const graph::OpResult values =
      switch_by(scope(), gradient.values, predicate, ports);
  const graph::OpResult indices =
      gradient.is_sparse()
          ? switch_by(scope(), gradient.indices, predicate, ports)
          : graph::OpResult();
  std::vector<Gradient> results;
  for (int port = 0; port < ports; ++port)
    results.push_back({values[port], indices[port]});
  return results;
}

Gradient Backprop::merged(const Endpoint& tensor,
                          std::vector<Gradient> inputs) {
  const bool is_sparse = std::ranges::all_of(inputs, &Gradient::is_sparse);
  graph::Inputs values, indices;
  for (const Gradient& input : inputs) {
    values.add(is_sparse ? input.values : dense(tensor, input));
    if (is_sparse) indices.add(input.indices);
  }
  Gradient merged{ops::merge(scope(), values).output};
  if (is_sparse) merged.indices = ops::merge(scope(), indices).output;
  return merged;
}

Gradient Backprop::lifted(const Endpoint& tensor, const Gradient& gradient,
                          const std::vector<Guard>& guards) {
  std::vector<Gradient> alternatives{gradient};
  Gradient otherwise = zeros(tensor, gradient);
  for (const Guard& guard : guards) {
    const std::vector<Gradient> ports =
        switched(otherwise, region_.value(guard.predicate), guard.ports);
    for (int port = 0; port < guard.ports; ++port)
      if (port != guard.port) alternatives.push_back(ports[size_t(port)]);
    otherwise = ports[size_t(guard.port)];
  }
  return merged(tensor, std::move(alternatives));
}

void Backprop::visit_switch(Node& node, std::vector<Gradient> grads) {
  const Endpoint& data = node.inputs()[0];
  if (!all_.paths.has(data)) return;
  if (analysis().is_loop_switch(node) && region_.frame() != FrameId::kRoot) {
    const Gradient& taken = grads[size_t(region_.loop_port())];
    if (taken.valid()) partials_[data].push_back(taken);
    return;
  }
  const Gradient like = *std::ranges::find_if(grads, &Gradient::valid);
  analysis().set_user(&node);
  const Output predicate = region_.value(node.inputs()[1]);
  std::vector<Gradient> unused;
  for (size_t port = 0; port < grads.size(); ++port) {
    if (grads[port].valid()) continue;
    if (unused.empty())
      unused = switched(zeros(data, like), predicate, node.num_outputs());
    grads[port] = unused[port];
  }
  add(data, analysis().live(node), merged(data, std::move(grads)));
}

namespace {

// The predicate that selects a Merge's input i by taking port i; null if no
// such predicate is found.
Endpoint chooser(Analysis& analysis, const Node& merge) {
  Conditions& conditions = analysis.conditions();
  std::vector<Conditions::Set> sets;
  for (const Endpoint& input : merge.inputs())
    sets.push_back(analysis.live(input));
  const Conditions::Set common = conditions.common(sets);
  graph::Condition first;
  for (size_t i = 0; i < sets.size(); ++i) {
    const Conditions::Set rest = conditions.without(sets[i], common);
    const auto ids = conditions.of(rest);
    if (ids.size() != 1) return {};
    const graph::Condition& condition = conditions.condition(ids[0]);
    if (i == 0) first = condition;
    if (condition.source != first.source || condition.port != int(i) ||
        condition.ports != int(sets.size()))
      return {};
  }
  return analysis.predicate_in(analysis.frame_of(merge), first);
}

}  // namespace

void Backprop::visit_merge(Node& node, const Gradient& grad) {
  if (!grad.valid()) return;
  Endpoint by = chooser(analysis(), node);
  const bool is_known = by.node != nullptr;
  if (!is_known) by = {&node, 1};
  analysis().set_user(&node);
  const int inputs = node.num_inputs();
  Output predicate = region_.value(by);
  // With two inputs, the value index is the predicate of a Switch, as a bool.
  if (!is_known && inputs == 2)
    predicate = ops::cast(scope(), predicate, DataType::kBool);
  const std::vector<Gradient> grads = switched(grad, predicate, inputs);
  for (int i = 0; i < inputs; ++i) {
    const Endpoint& input = node.inputs()[size_t(i)];
    if (all_.paths.has(input)) partials_[input].push_back(grads[size_t(i)]);
  }
}

}  // namespace tagflow::autodiff
