#include "autodiff/pushforward.h"

#include <algorithm>

#include "autodiff/forward_rule.h"
#include "autodiff/rule.h"
#include "autodiff/stand_in.h"
#include "graph/analysis/topology.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

bool is_control_flow(const Node& node) {
  return node.is_switch() || node.is_merge() || node.is_enter() ||
         node.is_exit() || node.is_next_iteration();
}

// The variant of the primitive for tensors that are not references.
std::string_view plain_op(const Node& node) {
  if (node.is_merge()) return "Merge";
  if (node.is_enter()) return "Enter";
  if (node.is_exit()) return "Exit";
  if (node.is_next_iteration()) return "NextIteration";
  return node.op() == "RefSwitch" ? "Switch" : std::string_view(node.op());
}

}  // namespace

const graph::Scope& Pushforward::scope_of(const Endpoint& tensor) {
  return scopes_.scope(analysis_.output_frame(*tensor.node));
}

void Pushforward::seed(const Endpoint& x, const Output& tangent) {
  const bool is_as_live =
      analysis_.output_frame(*tangent.node()) == frame_ &&
      analysis_.live(x) == analysis_.live(tangent.endpoint());
  set(x, is_as_live ? tangent : held_back(tangent, x));
}

Output Pushforward::tangent(const Endpoint& tensor) const {
  const auto found = tangents_.find(tensor);
  return found == tangents_.end() ? Output() : found->second;
}

Status Pushforward::run() {
  TAGFLOW_ASSIGN(const std::vector<Node*> order,
                 graph::topological_order(analysis_.graph()));
  for (Node* node : order)
    if (is_ok() && analysis_.knows(*node) && is_on_path(*node)) visit(*node);
  if (is_ok()) close_loops();
  return scopes_.status();
}

bool Pushforward::is_on_path(const Node& node) const {
  for (int port = 0; port < node.num_outputs(); ++port)
    if (paths_.has({const_cast<Node*>(&node), port})) return true;
  return false;
}

void Pushforward::visit(Node& node) {
  const bool has_tangent =
      std::ranges::any_of(node.inputs(), [&](const Endpoint& input) {
        return input.node != nullptr && paths_.has(input);
      });
  if (!has_tangent) return;
  if (is_control_flow(node))
    visit_primitive(node);
  else
    visit_by_rule(node);
}

void Pushforward::set(const Endpoint& tensor, Output tangent) {
  if (!tangent.valid()) return;
  Output& known = tangents_[tensor];
  if (known.valid()) tangent = ops::add_n(scope_of(tensor), {known, tangent});
  known = tangent;
  // It has its tensor's shape, also if shape inference cannot derive it.
  const bool is_variable =
      remove_ref(tensor.node->output_dtypes()[size_t(tensor.port)]) ==
      DataType::kResource;
  if (!tangent.has_tensor() || is_variable) return;
  narrow_shape(analysis_.graph(), tangent.endpoint(),
               analysis_.derivative_shape(tensor));
}

// A Switch has run regardless of which output is dead, so the control edge is
// from an Identity of the output.
Output Pushforward::held_back(const Output& tangent, const Endpoint& tensor) {
  const graph::Scope s = scope_of(tensor).with_device(tensor.node->device());
  Output there(tensor);
  if (tensor.node->is_switch()) there = ops::identity(s, there);
  return ops::identity(s.with_control_dependencies({there}), tangent);
}

Output Pushforward::zeros(const Endpoint& tensor, bool is_container) {
  const DataType dtype = tensor.node->output_dtypes()[size_t(tensor.port)];
  if (is_container)
    return held_back(scope_of(tensor).op("ZeroVariant", {}), tensor);
  if (dtype != DataType::kResource)
    return ops::zeros_like(scope_of(tensor).with_device(tensor.node->device()),
                           Output(tensor));
  Region& region = scopes_.region(analysis_.output_frame(*tensor.node));
  return held_back(region.zeros(tensor), tensor);
}

// A tensor that enters an iteration has a token only there, so nothing outside
// may read it: the zeros enter, too. They pass a Switch like the tensor.
Endpoint Pushforward::tangent_or_zeros(const Endpoint& tensor,
                                       bool is_container) {
  const Output known = tangent(tensor);
  if (known.valid()) return known.endpoint();
  const Node& node = *tensor.node;
  if (!node.is_enter() && !node.is_next_iteration() && !node.is_switch())
    return zeros(tensor, is_container).endpoint();
  std::vector<Endpoint> inputs{
      tangent_or_zeros(node.inputs()[0], is_container)};
  if (node.is_switch()) inputs.push_back(node.inputs()[1]);
  return {add_twin(node, std::move(inputs)), tensor.port};
}

// --- Control flow -----------------------------------------------------------

Node* Pushforward::add_twin(const Node& node, std::vector<Endpoint> inputs) {
  if (!is_ok()) return nullptr;
  AttrMap attrs;
  for (const char* name :
       {"num_outs", "frame_name", "is_constant", "parallel_iterations"})
    if (const auto found = node.attrs().find(name);
        found != node.attrs().end() && node.op_def().find_attr(name) != nullptr)
      attrs.emplace(name, found->second);
  if (node.is_merge()) {
    attrs = {{"N", int64_t(inputs.size())}};
    for (const Endpoint& input : inputs)
      if (input.node != nullptr)
        attrs.emplace("T", input.node->output_dtypes()[size_t(input.port)]);
  }
  const auto controls = node.control_inputs();
  return scopes_.add({.name = node.name(),
                      .op = plain_op(node),
                      .inputs = std::move(inputs),
                      .attrs = std::move(attrs),
                      .control_inputs = {controls.begin(), controls.end()},
                      .device = node.device()},
                     analysis_.frame_of(node), analysis_.output_frame(node));
}

void Pushforward::visit_primitive(Node& node) {
  std::vector<Endpoint> inputs;
  if (!node.is_merge()) {
    const Output data = tangent(node.inputs()[0]);
    if (!data.valid()) return;
    inputs.push_back(data.endpoint());
    if (node.is_switch()) inputs.push_back(node.inputs()[1]);
  } else {
    // Also if the initial flow of an array is a number.
    const bool is_variant = analysis_.is_container({&node, 0});
    bool has_back_edge = false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const bool is_back_edge = graph::is_back_edge(node, i);
      has_back_edge |= is_back_edge;
      inputs.push_back(is_back_edge
                           ? Endpoint()
                           : tangent_or_zeros(node.inputs()[i], is_variant));
    }
    // Tangents do not come from iterations before that of the xs.
    if (has_back_edge && frame_ != FrameId::kRoot &&
        analysis_.frame_of(node) == frame_)
      return;
    if (!has_back_edge && std::ranges::none_of(node.inputs(), [&](auto& in) {
          return tangent(in).valid();
        }))
      return;
  }
  Node* twin = add_twin(node, std::move(inputs));
  if (twin == nullptr) return;
  for (int port = 0; port < node.num_outputs(); ++port)
    if (paths_.has({&node, port})) set({&node, port}, Output(twin, port));
  if (node.is_merge()) open_.emplace_back(&node, twin);
}

void Pushforward::close_loops() {
  for (const auto& [merge, twin] : open_)
    for (size_t i = 0; i < merge->inputs().size(); ++i) {
      if (!graph::is_back_edge(*merge, i)) continue;
      const Endpoint back = tangent_or_zeros(
          merge->inputs()[i], analysis_.is_container({merge, 0}));
      if (!is_ok()) return;
      const Status set = analysis_.graph().set_input(twin, int(i), back);
      if (!set.ok()) return scopes_.scope(FrameId::kRoot).fail(set);
    }
}

// --- Rules ------------------------------------------------------------------

void Pushforward::visit_by_rule(Node& node) {
  const graph::Scope& s = scopes_.scope(analysis_.frame_of(node));
  const auto found = rule_of(node);
  if (!found.ok()) return s.fail(found.status());
  const RuleEntry* entry = *found;
  if (entry == nullptr)
    return s.fail(error(Code::kUnimplemented,
                        "[gradients] there is no gradient rule for op \"{}\" "
                        "of node \"{}\", on the path {}",
                        node.op(), node.name(), paths_.describe(node)));
  if (entry->rule == nullptr) return;
  const auto outputs = stand_in_outputs(node);
  if (!outputs.ok()) return s.fail(outputs.status());
  const size_t first = *outputs;  // of the inputs
  Conditions& conditions = analysis_.conditions();
  Conditions::Set read = Conditions::kNone;
  std::vector<Output> inputs;
  for (const Endpoint& input : node.inputs().subspan(first)) {
    inputs.push_back(paths_.has(input) ? tangent(input) : Output());
    if (inputs.back().valid())
      read = conditions.both(read, analysis_.live(input));
  }
  if (std::ranges::none_of(inputs, &Output::valid)) return;
  const int ports = first == 0 ? node.num_outputs() : int(first);
  std::vector<bool> wanted;
  for (int port = 0; port < ports; ++port)
    wanted.push_back(paths_.has({&node, port}));
  ForwardContext context(scopes_.region(analysis_.frame_of(node)), node,
                         std::move(inputs), std::move(wanted), first);
  if (entry->forward != nullptr && first == 0)
    entry->forward(context);
  else
    context.set_transposed();
  // Other inputs of the node may be dead, and so the node. For a loop that
  // cannot be cut, only the first iteration is known.
  const FrameId frame = analysis_.frame_of(node);
  const bool is_as_live =
      conditions.includes(read, analysis_.live(node)) &&
      (frame == FrameId::kRoot || analysis_.loop(frame).trouble.empty());
  std::vector<Output> results = std::move(context).take_results();
  for (int port = 0; port < ports; ++port) {
    const Endpoint output{&node, port};
    Output& result = results[size_t(port)];
    if (result.valid() && !is_as_live) result = held_back(result, output);
    set(output, result);
  }
}

}  // namespace tagflow::autodiff
