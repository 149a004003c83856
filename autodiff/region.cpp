#include "autodiff/region.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/ops_segment.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
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
  const Scope s = scope_.with_device(tensor.node->device());
  DataType own = remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]);
  if (analysis_.is_container(tensor)) {
    const Output none = s.op("ZeroVariant", {});
    // One empty variant for several containers may become several, as in sums.
    if (none.has_tensor())
      analysis_.graph().set_output_shape(none.node(), none.port(),
                                         analysis_.derivative_shape(tensor));
    return none;
  }
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
  return ops::fill(s, shape(tensor), zero);
}

Output Region::ones(const Endpoint& tensor) {
  const Scope s = scope_.with_device(tensor.node->device());
  const PartialShape& known = tensor.node->output_shape(tensor.port);
  if (frame_ != FrameId::kRoot || !known.fully_known() ||
      analysis_.live(tensor) != Conditions::kNone)
    return ops::ones_like(s, value(tensor));
  const Output one = graph::ScopeAccess::inside(s, nullptr)
                         .resolve(1, remove_ref(Output(tensor).dtype()), "one");
  return known.rank() == 0 ? one : ops::fill(s, shape(tensor), one);
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
  // The gradient of a function's body is in a separate graph.
  if (&scope_.graph() == &graph) {
    graph::BuilderState& state = graph::ScopeAccess::state(scope_);
    state.set_context(*made, state.context_of(&beside));
  }
  return value({*made, port});
}

// --- The outermost one ------------------------------------------------------

// The body of the innermost loop under construction, or null.
static graph::Context* body_around(const Scope& scope) {
  graph::Context* context = graph::ScopeAccess::context(scope);
  while (context != nullptr && context->kind != graph::Context::Kind::kLoop)
    context = context->parent;
  return context;
}

// A body under construction may have a loop to which its gradient has added
// Exits. The builder must know that these are in the body, or it would treat
// them as tensors from outside, which must enter.
Output PlainRegion::value(const Endpoint& tensor) {
  graph::BuilderState& builder = graph::ScopeAccess::state(scope());
  if (frame() != FrameId::kRoot && builder.context_of(tensor.node) == nullptr)
    builder.set_context(tensor.node, body_around(scope()));
  return Output(tensor);
}

Output PlainRegion::run_time_shape(const Endpoint& tensor, DataType dtype) {
  return ops::shape(scope(), Output(tensor), {dtype});
}

// --- Elsewhere --------------------------------------------------------------

Output DistantRegion::value(const Endpoint& tensor) {
  if (!scope().ok()) return {};
  const Endpoint source = value_source(tensor);
  if (const auto known = values_.find(source); known != values_.end())
    return known->second;
  Output value;
  if (const Endpoint there = outside(source); there.node != nullptr) {
    analysis().note(frame(), source, Kept::kOutside);
    value = around_or_null()->value(there);
  } else if (source.node->is_const()) {
    analysis().note(frame(), source, Kept::kConstant);
    value = constant(source.node->attr<Tensor>("value").value());
  } else {
    value = varying_value(source);
  }
  return values_[source] = value;
}

Output DistantRegion::run_time_shape(const Endpoint& tensor, DataType dtype) {
  if (!scope().ok()) return {};
  const Endpoint source = value_source(tensor);
  if (const Endpoint there = outside(source); there.node != nullptr)
    return around_or_null()->shape(there, dtype);
  Output& shape = shapes_[{source, dtype}];
  if (shape.valid()) return shape;
  // A node that the graph already has, for this gradient or an earlier one.
  for (const Use& use : analysis().uses(*source.node)) {
    const Node& node = *use.node;
    if (node.op() == "Shape" && node.inputs()[0] == source &&
        node.output_dtypes()[0] == dtype && node.control_inputs().empty())
      return shape = value({use.node, 0});
  }
  return shape = forward(fmt::format("{}/Shape", source.node->name()), "Shape",
                         {source}, {{"out_type", dtype}}, 0);
}

}  // namespace tagflow::autodiff
