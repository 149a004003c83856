#include "autodiff/loop_region.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Leaf;
using graph::Scope;

LoopRegion::LoopRegion(Region& around, ForwardLoop& forward, const Loop& loop,
                       Scope scope)
    : DistantRegion(around.analysis(), loop.frame, std::move(scope)),
      around_(around),
      forward_(forward),
      loop_(loop) {
  for (const LoopVariable& variable : loop.variables)
    if (variable.is_invariant())
      invariants_.emplace(Endpoint{variable.merge, 0},
                          variable.enter->inputs()[0]);
}

Endpoint LoopRegion::outside(const Endpoint& tensor) const {
  if (tensor.node->is_constant_enter()) return tensor.node->inputs()[0];
  const auto found = invariants_.find(tensor);
  return found == invariants_.end() ? Endpoint() : found->second;
}

// --- The body ---------------------------------------------------------------

Output BodyRegion::add_variable(std::string path, const Output& initial) {
  return grow_(Leaf{std::move(path), initial});
}

Output BodyRegion::varying_value(const Endpoint& tensor) {
  if (const auto counter = counter_at(tensor)) return counted(tensor, *counter);
  const Output value = recomputed(tensor);
  return value.valid() || !scope().ok() ? value : popped(tensor);
}

std::optional<Counter> BodyRegion::counter_at(const Endpoint& tensor) const {
  for (const LoopVariable& variable : loop().variables)
    if (tensor == Endpoint{variable.merge, 0}) return counter_of(variable);
  return {};
}

Output BodyRegion::counted(const Endpoint& tensor, const Counter& counter) {
  analysis().note(frame(), tensor, Kept::kCounted);
  const Scope& s = scope();
  const DataType type = tensor.node->output_dtypes()[0];
  Output steps = counter_;
  if (type != DataType::kInt64) steps = ops::cast(s, steps, type);
  if (counter.step != 1) steps = ops::mul(s, steps, counter.step);
  return ops::add(s, around().value(counter.first), steps);
}

Output BodyRegion::popped(const Endpoint& tensor) {
  const Scope& s = scope();
  const auto fail = [&](Status status) {
    s.fail(std::move(status));
    return Output();
  };
  const DataType dtype = tensor.node->output_dtypes()[size_t(tensor.port)];
  if (is_ref(dtype) || dtype == DataType::kResource) {
    // A varying handle, which is rare, cannot be saved on a stack.
    return fail(error(Code::kUnimplemented,
                      "[gradients] \"{}\" is {} and differs from iteration to "
                      "iteration of the loop of frame \"{}\"",
                      tensor.to_string(), dtype_name(dtype),
                      analysis().frame(frame()).name));
  }
  auto guards =
      guards_of(analysis(), frame(), analysis().live(tensor), given(), tensor);
  if (!guards.ok()) return fail(std::move(guards).status());
  auto stack = forward_loop().saved(tensor, *guards);
  if (!stack.ok()) return fail(std::move(stack).status());
  analysis().note(
      frame(), tensor,
      analysis().knows(*stack->node) ? Kept::kReused : Kept::kSaved);

  Output inside = add_variable(fmt::format("saved \"{}\"", tensor.to_string()),
                               around().value(*stack));
  const size_t position = next_values_.size();
  next_values_.emplace_back();
  std::vector<graph::OpResult> switches;
  for (const Guard& guard : *guards) {
    switches.push_back(
        switch_by(s, inside, value(guard.predicate), guard.ports));
    inside = switches.back()[guard.port];
  }
  const PartialShape& known = tensor.node->output_shape(tensor.port);
  const graph::OpResult pop =
      s.op("PersistentStackPop", {inside},
           {{"elem_type", dtype}, {"elem_shape", known}});
  Output rest = pop[0];
  for (size_t i = guards->size(); i-- > 0;) {
    const Guard& guard = (*guards)[i];
    graph::Inputs inputs;
    for (int port = 0; port < guard.ports; ++port)
      inputs.add(port == guard.port ? rest : switches[i][port]);
    rest = s.op("Merge", inputs);
  }
  next_values_[position] = {fmt::format("saved \"{}\"", tensor.to_string()),
                            rest};
  return pop[1];
}

// --- The end ----------------------------------------------------------------

Output EndRegion::varying_value(const Endpoint& tensor) {
  auto last = forward_loop().last(tensor);
  if (last.ok()) return around().value(*last);
  scope().fail(std::move(last).status());
  return {};
}

}  // namespace tagflow::autodiff
