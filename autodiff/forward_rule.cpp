#include "autodiff/forward_rule.h"

#include <algorithm>

#include "autodiff/region.h"
#include "autodiff/rule.h"
#include "autodiff/sum.h"
#include "autodiff/transpose.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

ForwardContext::ForwardContext(Region& region, const Node& node,
                               std::vector<Output> tangents,
                               std::vector<bool> wanted, size_t first_input)
    : NodeContext(region, node, node.name() + "_tangent", first_input),
      tangents_(std::move(tangents)),
      wanted_(std::move(wanted)),
      results_(wanted_.size()) {}

Output ForwardContext::tangent(int input) {
  Output& tangent = tangents_[size_t(input)];
  return tangent.valid() ? tangent : zeros_like_input(input);
}

void ForwardContext::set(int port, Output tangent) {
  if (wants(port) && tangent.valid()) results_[size_t(port)] = tangent;
}

void ForwardContext::set_broadcast(int input, Output tangent) {
  const PartialShape& from = known_input_shape(input);
  if (from.fully_known() && from == known_output_shape())
    return set(0, tangent);
  set(0, ops::broadcast_to(scope(), tangent, output_shape()));
}

// Copies the attributes that the op has; type attributes follow from the
// inputs.
graph::OpResult ForwardContext::apply(const Outputs& inputs) {
  AttrMap attrs;
  for (const auto& [name, value] : node().attrs())
    if (!name.starts_with('_')) attrs.emplace(name, value);
  return scope().op(node().op(), inputs, std::move(attrs));
}

void ForwardContext::set_linear(std::span<const int> inputs) {
  Outputs all;
  for (int i = 0; i < num_inputs(); ++i)
    all.push_back(std::ranges::find(inputs, i) == inputs.end() ? input(i)
                                                               : tangent(i));
  const graph::OpResult made = apply(all);
  for (int port = 0; port < num_outputs(); ++port) set(port, made[port]);
}

void ForwardContext::set_multilinear(std::span<const int> inputs) {
  std::vector<Output> terms;
  for (const int moving : inputs) {
    if (!has_tangent(moving)) continue;
    Outputs all;
    for (int i = 0; i < num_inputs(); ++i)
      all.push_back(i == moving ? tangent(i) : input(i));
    terms.push_back(apply(all)[0]);
  }
  if (!terms.empty()) set(0, sum_of(scope(), std::move(terms)));
}

// For complex numbers, gradients are conjugated, or differ in other ways.
void ForwardContext::set_symmetric() {
  if (is_complex(input_dtype(0))) return set_transposed();
  const RuleEntry* entry = RuleTable::global().find(node().op());
  RuleContext reverse(region(), node(), node().name() + "_tangent",
                      {{tangent(0)}}, {true});
  entry->rule(reverse);
  set(0, std::move(reverse).take_results()[0].values);
}

void ForwardContext::set_transposed() {
  std::vector<Output> results =
      transposed_tangents(region(), node(), tangents_, wanted_);
  for (int port = 0; port < num_outputs(); ++port)
    set(port, results[size_t(port)]);
}

}  // namespace tagflow::autodiff
