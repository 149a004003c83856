#include "graph/passes/rewriting.h"

#include <algorithm>

#include "graph/op_registry.h"
#include "graph/prune.h"

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
  // What a handle or a reference stands for may change meanwhile.
  const auto is_state = [](DataType type) {
    return is_ref(type) || type == DataType::kResource;
  };
  return !reads_reference(node) &&
         std::ranges::none_of(node.input_dtypes(), is_state) &&
         std::ranges::none_of(node.output_dtypes(), is_state) &&
         OpRegistry::global().find_or_null(node.op()) == &node.op_def();
}

bool is_plain_identity(const Node& node) {
  if (!node.control_inputs().empty() || node.num_inputs() != 1) return false;
  if (!node.is_identity() && node.op() != "IdentityN" &&
      node.op() != "StopGradient" && node.op() != "PreventGradient" &&
      node.op() != "Snapshot")
    return false;
  return !reads_reference(node) && !is_ref(node.output_dtypes()[0]);
}

bool is_loop_constant(const Node& node) {
  if (!node.is_enter() || !node.control_inputs().empty()) return false;
  const auto constant = node.attrs().find("is_constant");
  return constant != node.attrs().end() && constant->second == AttrValue(true);
}

bool control_tells_deadness(const Endpoint& source) {
  return !source.node->is_switch() && !source.node->op().starts_with("_Call");
}

void add_once(NodeList& list, Node* node) {
  if (std::ranges::find(list, node) == list.end()) list.push_back(node);
}

bool add_dependence(NodeList& list, const Endpoint& source) {
  if (source.node->is_const()) {
    for (Node* control : source.node->control_inputs()) add_once(list, control);
    return true;
  }
  if (!control_tells_deadness(source)) return false;
  add_once(list, source.node);
  return true;
}

Endpoint Detour::end(const Endpoint& from) const {
  const auto it = outputs_.find(from);
  return it == outputs_.end() ? from : it->second;
}

void Detour::lead(const Endpoint& from, const Endpoint& to) {
  outputs_.insert_or_assign(from, end(to));
}

void Detour::lead_control(Node* from, const NodeList& to) {
  NodeList ends;
  for (Node* node : to) {
    const auto it = controls_.find(node);
    if (it == controls_.end()) {
      add_once(ends, node);
    } else {
      for (Node* end : it->second) add_once(ends, end);
    }
  }
  controls_.insert_or_assign(from, std::move(ends));
}

Result<Node*> Detour::replace(Node* old, std::string_view op,
                              std::span<const Endpoint> inputs, AttrMap attrs,
                              std::span<Node* const> controls) {
  Graph& graph = program_.graph;
  TAGFLOW_ASSIGN(Node * made,
                 graph.add(graph.unique_name(old->name()), op, inputs,
                           std::move(attrs), controls, old->device()));
  const int shared = std::min(old->num_outputs(), made->num_outputs());
  for (int i = 0; i < shared; ++i) lead({old, i}, {made, i});
  lead_control(old, {made});
  return made;
}

Status Detour::apply() {
  Graph& graph = program_.graph;
  for (Node* node : graph.nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const auto it = outputs_.find(node->inputs()[i]);
      if (it != outputs_.end())
        TAGFLOW_RETURN_IF_ERROR(graph.set_input(node, int(i), it->second));
    }
    const std::vector<Node*> controls(node->control_inputs().begin(),
                                      node->control_inputs().end());
    if (std::ranges::none_of(controls,
                             [&](Node* c) { return controls_.contains(c); }))
      continue;
    std::vector<Node*> led;
    for (Node* control : controls) {
      const auto it = controls_.find(control);
      if (it == controls_.end()) {
        led.push_back(control);
      } else {
        led.insert(led.end(), it->second.begin(), it->second.end());
      }
    }
    for (Node* control : controls) graph.remove_control_input(node, control);
    for (Node* control : led) graph.add_control_input(node, control);
  }
  for (Endpoint& fetch : program_.fetches) fetch = end(fetch);
  std::vector<Node*> targets;
  for (Node* target : program_.targets) {
    const auto it = controls_.find(target);
    if (it == controls_.end()) {
      targets.push_back(target);
    } else {
      targets.insert(targets.end(), it->second.begin(), it->second.end());
    }
  }
  program_.targets = std::move(targets);
  return {};
}

void sweep(Program& program) {
  std::vector<Node*> roots = program.targets;
  for (const Endpoint& feed : program.feeds) roots.push_back(feed.node);
  const NodeSet needed = prune(program.graph, program.fetches, roots, {});
  if (needed.size() == program.graph.size()) return;
  std::vector<Node*> gone;
  for (Node* node : program.graph.nodes())
    if (!needed.contains(*node)) gone.push_back(node);
  program.graph.remove(gone);
}

}  // namespace tagflow::graph
