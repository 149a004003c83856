#include "autodiff/region.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"
#include "graph/passes/rewriting.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Leaf;
using graph::Scope;

// --- All regions ------------------------------------------------------------

Output Region::constant(Tensor value) const {
  return graph::ScopeAccess::inside(scope_, nullptr).constant(std::move(value));
}

Output Region::dims(const PartialShape& shape, DataType dtype) const {
  if (dtype == DataType::kInt64)
    return constant(Tensor::of<int64_t>({int64_t(shape.rank())}, shape.dims()));
  const std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
  return constant(Tensor::of<int32_t>({int64_t(dims.size())}, dims));
}

Output Region::shape(const Endpoint& tensor, DataType dtype) {
  if (remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]) ==
      DataType::kResource)
    return shape_of_variable(tensor, dtype);
  const PartialShape& known = tensor.node->output_shape(tensor.port);
  if (!known.fully_known()) return run_time_shape(tensor, dtype);
  if (frame_ != FrameId::kRoot)
    analysis_.note(frame_, tensor, Kept::kKnownShape);
  return dims(known, dtype);
}

Output Region::shape_of_variable(const Endpoint& handle, DataType dtype) {
  if (const Node* variable = analysis_.variable_of(handle)) {
    const auto known = variable->attr<PartialShape>("shape");
    if (known.ok() && known->fully_known()) return dims(*known, dtype);
  }
  return scope_.op("VariableShape", {value(handle)}, {{"out_type", dtype}});
}

Output Region::dense(const Scope& s, const Endpoint& like,
                     const Gradient& gradient) {
  if (!gradient.is_sparse() || !s.ok()) return gradient.values;
  return ops::unsorted_segment_sum(s, gradient.values, gradient.indices,
                                   ops::gather(s, shape(like), 0));
}

Output Region::zeros(const Endpoint& tensor, DataType dtype) {
  DataType own = remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]);
  if (analysis_.is_container(tensor)) return scope_.op("ZeroVariant", {});
  if (own == DataType::kResource) {
    const Node* variable = analysis_.variable_of(tensor);
    if (dtype == DataType::kInvalid && variable != nullptr)
      dtype = variable->attr<DataType>("dtype").value();
    if (dtype == DataType::kInvalid) {
      scope_.fail(error(Code::kUnimplemented,
                        "[gradients] the type of the variable behind \"{}\" "
                        "is not known when the graph is built",
                        tensor.to_string()));
      return {};
    }
    own = dtype;
  }
  const PartialShape& known = tensor.node->output_shape(tensor.port);
  const Output zero =
      graph::ScopeAccess::inside(scope_, nullptr).resolve(0, own, "zero");
  if (known.has_rank() && known.rank() == 0 &&
      tensor.node->output_dtypes()[size_t(tensor.port)] != DataType::kResource)
    return zero;
  return ops::fill(scope_, shape(tensor), zero);
}

Output Region::forward(const std::string& name, std::string_view op,
                       const std::vector<Endpoint>& inputs, AttrMap attrs,
                       int port) {
  if (!scope_.ok()) return {};
  graph::Graph& graph = analysis_.graph();
  const Node& beside = *inputs.front().node;
  auto made = graph.add(graph.unique_name(name), op, inputs, std::move(attrs),
                        {}, beside.device());
  if (!made.ok()) {
    scope_.fail(std::move(made).status());
    return {};
  }
  Conditions::Set live = Conditions::kNone;
  for (const Endpoint& input : inputs)
    live = analysis_.conditions().both(live, analysis_.live(input));
  analysis_.add(**made, frame_, live);
  return value({*made, port});
}

// --- The outermost one ------------------------------------------------------

// The body of the innermost loop that is being built; null outside of all.
static graph::Context* body_around(const Scope& scope) {
  graph::Context* context = graph::ScopeAccess::context(scope);
  while (context != nullptr && context->kind != graph::Context::Kind::kLoop)
    context = context->parent;
  return context;
}

// In a body that is being built, there may be a loop to which its gradient has
// added Exits. The builder has to know that these are in the body, too: else it
// takes them for tensors from outside, which would have to enter.
Output PlainRegion::value(const Endpoint& tensor) {
  graph::BuilderState& builder = graph::ScopeAccess::state(scope());
  if (frame() != FrameId::kRoot && builder.context_of(tensor.node) == nullptr)
    builder.set_context(tensor.node, body_around(scope()));
  return Output(tensor);
}

Output PlainRegion::run_time_shape(const Endpoint& tensor, DataType dtype) {
  return ops::shape(scope(), Output(tensor), {dtype});
}

// --- Loops ------------------------------------------------------------------

LoopRegion::LoopRegion(Region& around, ForwardLoop& forward, const Loop& loop,
                       Scope scope)
    : Region(around.analysis(), loop.frame, std::move(scope)),
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

Output LoopRegion::value(const Endpoint& tensor) {
  if (!scope().ok()) return {};
  const Endpoint source = value_source(tensor);
  if (const auto known = values_.find(source); known != values_.end())
    return known->second;
  Output value;
  if (const Endpoint there = outside(source); there.node != nullptr) {
    analysis().note(frame(), source, Kept::kOutside);
    value = around_.value(there);
  } else if (source.node->is_const()) {
    analysis().note(frame(), source, Kept::kConstant);
    value = constant(source.node->attr<Tensor>("value").value());
  } else {
    value = varying_value(source);
  }
  return values_[source] = value;
}

Output LoopRegion::run_time_shape(const Endpoint& tensor, DataType dtype) {
  if (!scope().ok()) return {};
  const Endpoint source = value_source(tensor);
  if (const Endpoint there = outside(source); there.node != nullptr)
    return around_.shape(there, dtype);
  Output& shape = shapes_[{source, dtype}];
  if (shape.valid()) return shape;
  // One that the graph has, for this gradient or an earlier one.
  for (const Use& use : analysis().uses(*source.node)) {
    const Node& node = *use.node;
    if (node.op() == "Shape" && node.inputs()[0] == source &&
        node.output_dtypes()[0] == dtype && node.control_inputs().empty())
      return shape = value({use.node, 0});
  }
  return shape = forward(fmt::format("{}/Shape", source.node->name()), "Shape",
                         {source}, {{"out_type", dtype}}, 0);
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
    // A handle that varies: of no use to a stack, and rare.
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
  const graph::OpResult pop =
      s.op("PersistentStackPop", {inside}, {{"elem_type", dtype}});
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
  const PartialShape& known = tensor.node->output_shape(tensor.port);
  if (pop.node() != nullptr)
    analysis().graph().set_output_shape(pop.node(), 1, known);
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
