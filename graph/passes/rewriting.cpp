#include "graph/passes/rewriting.h"

#include <algorithm>

#include "graph/analysis/class_labels.h"
#include "graph/analysis/prune.h"
#include "graph/node_name.h"

namespace tagflow::graph {

std::string name_after(const Graph& graph, const Node& node,
                       std::string_view ending) {
  const size_t most = kMaxNameLength - ending.size();
  return graph.unique_name(node.name().substr(0, most).append(ending));
}

Result<Node*> add_for(Graph& graph, const Node& old, std::string name,
                      std::string_view op, std::span<const Endpoint> inputs,
                      AttrMap attrs, std::span<Node* const> controls) {
  if (const auto classes = classes_of(old); !classes.empty())
    attrs.insert_or_assign(
        std::string(kClassAttr),
        std::vector<std::string>(classes.begin(), classes.end()));
  return graph.add(std::move(name), op, inputs, std::move(attrs), controls,
                   old.device());
}

Result<Node*> add_constant_enter(Graph& graph, const Node& old,
                                 const StaticFrame& frame,
                                 const Endpoint& value) {
  TAGFLOW_ASSIGN(Node * enter,
                 add_for(graph, old, name_after(graph, old, "/Enter"), "Enter",
                         {&value, 1},
                         {{"frame_name", frame.name},
                          {"is_constant", true},
                          {"parallel_iterations", frame.parallel_iterations}},
                         {}));
  graph.set_output_shape(enter, 0, value.node->output_shape(value.port));
  return enter;
}

Result<Node*> add_waiting(Graph& graph, const Node& old, Node* constant,
                          Node* waits) {
  const Endpoint source{constant, 0};
  Node* const controls[] = {waits};
  TAGFLOW_ASSIGN(
      Node * made,
      add_for(graph, old, name_after(graph, old), "Identity", {&source, 1},
              {{"T", constant->output_dtypes()[0]}}, controls));
  graph.set_output_shape(made, 0, constant->output_shape(0));
  return made;
}

const Detour::Lead* Detour::find(const Node& from) const {
  if (from.id() >= lead_index_.size()) return nullptr;
  const uint32_t index = lead_index_[from.id()];
  return index == 0 ? nullptr : &leads_[index - 1];
}

Detour::Lead& Detour::lead_of(const Node& from) {
  if (from.id() >= lead_index_.size())
    lead_index_.resize(program_.graph.end_id());
  uint32_t& index = lead_index_[from.id()];
  if (index == 0) {
    leads_.emplace_back();
    index = uint32_t(leads_.size());
  }
  return leads_[index - 1];
}

Endpoint Detour::end(const Endpoint& from) const {
  const Lead* lead = from.node == nullptr ? nullptr : find(*from.node);
  if (lead == nullptr || size_t(from.port) >= lead->outputs.size() ||
      lead->outputs[size_t(from.port)].node == nullptr)
    return from;
  return lead->outputs[size_t(from.port)];
}

std::span<Node* const> Detour::control_ends(const Node& from) const {
  const Lead* lead = find(from);
  if (lead == nullptr) return {};
  return {lead->controls.data(), lead->controls.size()};
}

std::vector<Node*> Detour::ends_of(std::span<Node* const> nodes) const {
  std::vector<Node*> ends;
  for (Node* node : nodes) {
    const auto led = control_ends(*node);
    if (led.empty()) {
      ends.push_back(node);
    } else {
      ends.insert(ends.end(), led.begin(), led.end());
    }
  }
  return ends;
}

void Detour::lead(const Endpoint& from, const Endpoint& to) {
  const Endpoint last = end(to);
  Endpoints& outputs = lead_of(*from.node).outputs;
  if (outputs.size() <= size_t(from.port))
    outputs.resize(size_t(from.port) + 1);
  outputs[size_t(from.port)] = last;
}

void Detour::lead_control(Node* from, const NodeList& to) {
  const NodeList ends(ends_of(to));
  lead_of(*from).controls.assign(ends.begin(), ends.end());
}

Result<Node*> Detour::replace(Node* old, std::string_view op,
                              std::span<const Endpoint> inputs, AttrMap attrs,
                              std::span<Node* const> controls) {
  Graph& graph = program_.graph;
  TAGFLOW_ASSIGN(Node * made, add_for(graph, *old, name_after(graph, *old), op,
                                      inputs, std::move(attrs), controls));
  const int shared = std::min(old->num_outputs(), made->num_outputs());
  for (int i = 0; i < shared; ++i) lead({old, i}, {made, i});
  lead_control(old, {made});
  return made;
}

Status Detour::apply() {
  Graph& graph = program_.graph;
  for (Node* node : graph.nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Endpoint from = node->inputs()[i];
      if (const Endpoint to = end(from); to != from)
        TAGFLOW_RETURN_IF_ERROR(graph.set_input(node, int(i), to));
    }
    if (std::ranges::all_of(node->control_inputs(), [&](const Node* control) {
          return control_ends(*control).empty();
        }))
      continue;
    graph.set_control_inputs(node, ends_of(node->control_inputs()));
  }
  for (Endpoint& fetch : program_.fetches)
    if (fetch.node != nullptr) fetch = end(fetch);
  program_.targets = ends_of(program_.targets);
  return {};
}

Result<bool> Detour::finish() {
  TAGFLOW_RETURN_IF_ERROR(apply());
  sweep(program_);
  return true;
}

void sweep(Program& program) {
  std::vector<Node*> roots = program.targets;
  for (const Endpoint& feed : program.feeds)
    if (feed.node != nullptr) roots.push_back(feed.node);
  const NodeSet needed = prune(program.graph, program.fetches, roots, {});
  if (needed.size() == program.graph.size()) return;
  std::vector<Node*> gone;
  for (Node* node : program.graph.nodes())
    if (!needed.contains(*node)) gone.push_back(node);
  program.graph.remove(gone);
}

}  // namespace tagflow::graph
