#include "actors/plan/frozen_variables.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "devices/state/resource_op.h"
#include "devices/state/state_kind.h"
#include "graph/allocator.h"
#include "graph/analysis/frames.h"
#include "graph/analysis/polls.h"
#include "graph/analysis/topology.h"
#include "graph/passes/rewriting.h"

namespace tagflow::actors {
namespace {

using devices::StateLock;
using devices::Variable;
using graph::Endpoint;
using graph::Node;

bool makes_variable(const Node& node) {
  return devices::makes_variable(node.op());
}

bool is_on_host(const Tensor& value) {
  return value.buffer() == nullptr ||
         value.buffer()->allocator->shares_memory(host_allocator());
}

// The op that forwards a value as this one forwards a handle; empty for ops
// that forward no handle.
std::string_view op_on_values(const Node& node) {
  if (node.is_identity()) return "Identity";
  if (node.is_constant_enter()) return "Enter";
  if (node.is_switch()) return "Switch";
  return {};
}

class Freezer {
 public:
  Freezer(graph::Program& program, const devices::ResourceManager& resources)
      : graph_(program.graph), resources_(resources), detour_(program) {}

  Result<FrozenVariables> run() {
    std::vector<Node*> reads;
    for (Node* node : graph_.nodes())
      if (graph::reads_variable(*node)) reads.push_back(node);
    if (reads.empty()) return std::move(frozen_);
    TAGFLOW_RETURN_IF_ERROR(find_bound());
    for (Node* read : reads)
      if (!bound_[read->id()]) TAGFLOW_RETURN_IF_ERROR(freeze(read));
    if (!detour_.empty()) TAGFLOW_RETURN_IF_ERROR(detour_.finish().status());
    return std::move(frozen_);
  }

 private:
  // --- Reads that cannot be frozen -------------------------------------------

  // Marks nodes after a node that sees effects of other runs, and reads that
  // decide whether a loop continues.
  Status find_bound() {
    std::vector<const Node*> first;
    for (const Node* node : graph_.nodes()) {
      if (node->is_merge())
        for (const Endpoint& input : node->inputs())
          in_merge_.insert(input.node);
      if (graph::reads_variable(*node)
              ? !can_be_known(*node)
              : graph::reads_variables(*node) || graph::may_see_others(*node))
        first.push_back(node);
    }
    if (std::ranges::any_of(graph_.nodes(), &Node::is_loop_cond)) {
      TAGFLOW_ASSIGN(const auto frames, graph::FrameMap::build(graph_));
      const std::vector<bool> polls = graph::find_polls(graph_, frames);
      for (const Node* node : graph_.nodes())
        if (polls[node->id()]) first.push_back(node);
    }
    bound_ = graph::all_after(graph::find_successors(graph_), std::move(first));
    return {};
  }

  // Whether its handle is that of a variable whose value is available.
  bool can_be_known(const Node& read) {
    const Node* node = read.inputs()[0].node;
    while (!op_on_values(*node).empty()) node = node->inputs()[0].node;
    if (!makes_variable(*node)) return false;
    const auto [entry, is_new] = versions_.try_emplace(node->id());
    if (is_new) entry->second = find_version(*node);
    const Version& version = entry->second;
    return version.variable.get() != nullptr &&
           version.variable->dtype() == read.output_dtypes()[0];
  }

  // --- Replacing -------------------------------------------------------------

  Status freeze(Node* read) {
    TAGFLOW_ASSIGN(const Endpoint value,
                   value_of(read->inputs()[0], read->output_dtypes()[0]));
    // The reader of a reference has the same control inputs, except for a
    // Merge.
    const bool may_go =
        read->control_inputs().empty() ||
        (read->op() == "_Dereference" && !in_merge_.contains(read));
    if (may_go && graph::control_tells_deadness(value)) {
      detour_.lead({read, 0}, value);
      graph::NodeList waits(read->control_inputs());
      waits.add(value.node);
      detour_.lead_control(read, waits);
      return {};
    }
    return detour_
        .replace(read, "Identity", {&value, 1},
                 {{"T", read->output_dtypes()[0]}}, read->control_inputs())
        .status();
  }

  // The value of the variable that a handle or reference refers to. REQUIRES:
  // its read can_be_known().
  Result<Endpoint> value_of(const Endpoint& handle, DataType type) {
    std::vector<Node*> way;  // from the handle to its maker
    Node* node = handle.node;
    while (!values_.contains(node->id()) && !makes_variable(*node)) {
      way.push_back(node);
      node = node->inputs()[0].node;
    }
    if (!values_.contains(node->id())) {
      TAGFLOW_ASSIGN(values_[node->id()], constant_for(*node, type));
    }
    for (; !way.empty(); way.pop_back()) {
      TAGFLOW_ASSIGN(values_[way.back()->id()], mirror(*way.back(), type));
    }
    return Endpoint{values_.at(handle.node->id()), handle.port};
  }

  // The node that forwards the value where `node` forwards the handle.
  Result<Node*> mirror(const Node& node, DataType type) {
    std::vector<Endpoint> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0].node = values_.at(inputs[0].node->id());
    AttrMap attrs = node.attrs();
    attrs.insert_or_assign("T", type);
    return graph::add_for(
        graph_, node, graph::name_after(graph_, node, "/frozen"),
        op_on_values(node), inputs, std::move(attrs), node.control_inputs());
  }

  struct Version {
    Ref<Variable> variable;  // null: not available
    uint64_t number = 0;
    Tensor value;
  };

  Version find_version(const Node& maker) const {
    const devices::ResourceKey key = devices::resource_key(maker);
    const Ref<devices::StateObject> object = resources_.find(key);
    auto* const variable = dynamic_cast<Variable*>(object.get());
    if (key.name == devices::kAnonymousName || variable == nullptr ||
        !variable->is_as_declared(maker) || variable->is_read_by_copy() ||
        !variable->lock().try_lock(StateLock::Mode::kShared))
      return {};
    Version version{Ref<Variable>(variable), variable->version(),
                    variable->value()};
    variable->lock().unlock(StateLock::Mode::kShared);
    if (!version.value.valid() || !is_on_host(version.value)) return {};
    return version;
  }

  Result<Node*> constant_for(const Node& maker, DataType type) {
    const Version& version = versions_.at(maker.id());
    frozen_.add(version.variable, version.number);
    return graph::add_for(
        graph_, maker, graph::name_after(graph_, maker, "/frozen"), "Const", {},
        {{"value", version.value}, {"dtype", type}}, maker.control_inputs());
  }

  graph::Graph& graph_;
  const devices::ResourceManager& resources_;
  graph::Detour detour_;
  std::vector<bool> bound_;  // by node id
  std::unordered_set<const Node*> in_merge_;
  std::unordered_map<graph::NodeId, Version> versions_;  // by maker
  // For each node that forwards a handle, the node that forwards its value.
  std::unordered_map<graph::NodeId, Node*> values_;
  FrozenVariables frozen_;
};

}  // namespace

bool FrozenVariables::are_current() const {
  return std::ranges::all_of(versions_, [](const Version& version) {
    return version.variable->version() == version.number &&
           !version.variable->has_ended();
  });
}

Result<FrozenVariables> freeze_variables(
    graph::Program& program, const devices::ResourceManager& resources) {
  return Freezer(program, resources).run();
}

}  // namespace tagflow::actors
