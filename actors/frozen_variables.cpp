#include "actors/frozen_variables.h"

#include <algorithm>
#include <map>
#include <optional>

#include "devices/state/resource_op.h"
#include "graph/allocator.h"
#include "graph/passes/rewriting.h"

namespace tagflow::actors {
namespace {

using devices::StateLock;
using devices::Variable;
using graph::Endpoint;
using graph::Node;

bool makes_variable(const Node& node) {
  return node.op() == "VarHandleOp" || node.op() == "VariableV2" ||
         node.op() == "Variable";
}

bool is_on_host(const Tensor& value) {
  return value.buffer() == nullptr ||
         value.buffer()->allocator->shares_memory(host_allocator());
}

// What it leads a handle on to, as it leads on any value; empty for other ops.
std::string_view op_on_values(const Node& node) {
  if (node.is_identity()) return "Identity";
  if (node.is_constant_enter()) return "Enter";
  if (node.is_switch()) return "Switch";
  return {};
}

class Freezer {
 public:
  Freezer(graph::Program& program, const devices::ResourceManager& resources)
      : program_(program),
        graph_(program.graph),
        resources_(resources),
        detour_(program) {}

  Result<FrozenVariables> run() {
    const std::vector<Node*> nodes(graph_.nodes().begin(),
                                   graph_.nodes().end());
    for (Node* node : nodes)
      if (reads_variable(*node)) TAGFLOW_RETURN_IF_ERROR(freeze(node));
    if (!detour_.empty()) TAGFLOW_RETURN_IF_ERROR(detour_.finish().status());
    return std::move(frozen_);
  }

 private:
  Status freeze(Node* read) {
    TAGFLOW_ASSIGN(const Endpoint value,
                   value_of(read->inputs()[0], read->output_dtypes()[0]));
    if (value.node == nullptr) return {};
    const bool is_reference = read->op() == "_Dereference";
    // The reader of a reference waits for the same itself, but for a Merge.
    const bool may_go = read->control_inputs().empty() ||
                        (is_reference && !leads_to_merge(*read));
    if (may_go && graph::control_tells_deadness(value)) {
      detour_.lead({read, 0}, value);
      detour_.lead_control(read, waits_of(*read, value));
      return {};
    }
    return detour_
        .replace(read, "Identity", {&value, 1},
                 {{"T", read->output_dtypes()[0]}}, read->control_inputs())
        .status();
  }

  static graph::NodeList waits_of(const Node& read, const Endpoint& value) {
    graph::NodeList waits(read.control_inputs());
    waits.add(value.node);
    return waits;
  }

  bool leads_to_merge(const Node& read) const {
    return std::ranges::any_of(graph_.nodes(), [&](const Node* node) {
      return node->is_merge() &&
             std::ranges::any_of(node->inputs(), [&](const Endpoint& input) {
               return input.node == &read;
             });
    });
  }

  // The value of what a handle or reference stands for; null where that is not
  // known.
  Result<Endpoint> value_of(const Endpoint& handle, DataType type) {
    const auto known = values_.find(handle.node->id());
    if (known != values_.end())
      return Endpoint{known->second, known->second ? handle.port : 0};
    Node* const made_by = handle.node;
    Result<Node*> made = makes_variable(*made_by) ? constant_for(*made_by, type)
                                                  : mirror(*made_by, type);
    TAGFLOW_RETURN_IF_ERROR(made.status());
    values_.emplace(made_by->id(), *made);
    return Endpoint{*made, *made ? handle.port : 0};
  }

  // The same step of the way, for the value.
  Result<Node*> mirror(const Node& node, DataType type) {
    const std::string_view op = op_on_values(node);
    if (op.empty()) return nullptr;
    TAGFLOW_ASSIGN(const Endpoint value, value_of(node.inputs()[0], type));
    if (value.node == nullptr) return nullptr;
    std::vector<Endpoint> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = value;
    AttrMap attrs = node.attrs();
    attrs.insert_or_assign("T", type);
    return graph::add_for(graph_, node,
                          graph::name_after(graph_, node, "/frozen"), op,
                          inputs, std::move(attrs), node.control_inputs());
  }

  Result<Node*> constant_for(const Node& maker, DataType type) {
    const auto key = devices::resource_key(
        maker, maker.op() == "VarHandleOp" ? "variable" : "reference variable");
    const Ref<devices::StateObject> object = resources_.find(key);
    auto* const variable = dynamic_cast<Variable*>(object.get());
    if (key.name == devices::kAnonymousName || variable == nullptr ||
        variable->dtype() != type || variable->is_read_by_copy() ||
        !variable->lock().try_lock(StateLock::Mode::kShared))
      return nullptr;
    const uint64_t version = variable->version();
    const Tensor value = variable->value();
    variable->lock().unlock(StateLock::Mode::kShared);
    if (!value.valid() || !is_on_host(value)) return nullptr;
    frozen_.add(Ref<Variable>(variable), version);
    return graph::add_for(
        graph_, maker, graph::name_after(graph_, maker, "/frozen"), "Const", {},
        {{"value", value}, {"dtype", type}}, maker.control_inputs());
  }

  graph::Program& program_;
  graph::Graph& graph_;
  const devices::ResourceManager& resources_;
  graph::Detour detour_;
  // By the node that hands on a handle, the one that hands on its value.
  std::map<graph::NodeId, Node*> values_;
  FrozenVariables frozen_;
};

}  // namespace

bool reads_variable(const Node& node) {
  return node.op() == "ReadVariableOp" || node.op() == "_Dereference";
}

bool FrozenVariables::are_current() const {
  return std::ranges::all_of(versions_, [](const Version& version) {
    return version.variable->version() == version.number;
  });
}

Result<FrozenVariables> freeze_variables(
    graph::Program& program, const devices::ResourceManager& resources) {
  return Freezer(program, resources).run();
}

}  // namespace tagflow::actors
