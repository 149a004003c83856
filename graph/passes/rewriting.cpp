#include "graph/passes/rewriting.h"

#include <algorithm>

#include "graph/analysis/class_labels.h"
#include "graph/analysis/known_value.h"
#include "graph/analysis/prune.h"
#include "graph/node_name.h"

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
  // The object behind a handle or a reference may change meanwhile.
  const auto is_state = [](DataType type) {
    return is_ref(type) || type == DataType::kResource;
  };
  return !reads_reference(node) &&
         std::ranges::none_of(node.input_dtypes(), is_state) &&
         std::ranges::none_of(node.output_dtypes(), is_state) &&
         node.op_def().is_registered;
}

bool is_plain_identity(const Node& node) {
  if (!node.control_inputs().empty() || node.num_inputs() != 1) return false;
  const OpDef& op = node.op_def();
  if ((!op.forwards && op.name != "IdentityN") || op.is_stateful ||
      node.is_loop_cond() || op.name == "PlaceholderWithDefault")
    return false;
  return !reads_reference(node) && !is_ref(node.output_dtypes()[0]);
}

bool is_elementwise(const Node& node) {
  return node.op_def().is_fusible && is_pure(node);
}

bool has_one_known_shape(const Node& node) {
  const auto shape_of = [](const Endpoint& input) -> const PartialShape& {
    return input.node->output_shape(input.port);
  };
  const auto inputs = node.inputs();
  return !inputs.empty() && shape_of(inputs[0]).fully_known() &&
         std::ranges::all_of(inputs, [&](const Endpoint& input) {
           return shape_of(input) == shape_of(inputs[0]);
         });
}

bool is_last_axis(const Endpoint& axis, int rank) {
  const Tensor* value = known_constant(axis);
  if (value == nullptr || value->num_elements() != 1) return false;
  const int64_t at = value->dtype() == DataType::kInt32
                         ? value->data<int32_t>()[0]
                         : value->data<int64_t>()[0];
  return at == -1 || at == rank - 1;
}

bool is_set(const Node& node, std::string_view flag) {
  const auto value = node.attr<bool>(flag);
  return value.ok() && *value;
}

bool is_loop_constant(const Node& node) {
  return node.is_constant_enter() && node.control_inputs().empty();
}

bool control_tells_deadness(const Endpoint& source) {
  return !source.node->is_switch() && !source.node->op().starts_with("_Call");
}

bool hides_deadness(const Node& node) {
  return node.op() == "_Recv" || node.op().starts_with("_Call");
}

namespace {

// Malformed ones were rejected before any pass.
std::span<const std::string> classes_of(const Node& node) {
  const auto labels = class_labels(node);
  return labels.ok() ? *labels : std::span<const std::string>();
}

}  // namespace

bool has_same_constraints(const Node& a, const Node& b) {
  return a.device() == b.device() &&
         std::ranges::equal(classes_of(a), classes_of(b));
}

bool is_unconstrained(const Node& node) {
  return node.device().empty() && classes_of(node).empty();
}

void NodeList::add(Node* node) {
  constexpr size_t kFew = 8;
  if (nodes_.size() < kFew) {
    if (std::ranges::find(nodes_, node) != nodes_.end()) return;
  } else {
    if (known_.empty()) known_.insert(nodes_.begin(), nodes_.end());
    if (!known_.insert(node).second) return;
  }
  nodes_.push_back(node);
}

void NodeList::add(std::span<Node* const> nodes) {
  for (Node* node : nodes) add(node);
}

bool add_dependence(NodeList& list, const Endpoint& source) {
  const auto controls = source.node->control_inputs();
  if (source.node->is_const() && controls.size() <= kMaxControls) {
    list.add(controls);
    return true;
  }
  if (!control_tells_deadness(source)) return false;
  list.add(source.node);
  return true;
}

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
