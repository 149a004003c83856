#include "graph/placement/constraints.h"

#include <algorithm>
#include <unordered_map>

#include "graph/analysis/class_labels.h"
#include "graph/placement/colocation.h"

namespace tagflow::graph {
namespace {

bool has_constraints(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    return !node->device().empty() || node->attrs().contains(kClassAttr);
  });
}

// Writes the resolved constraints into the nodes.
class Resolver {
 public:
  Resolver(Program& program, std::span<const DeviceInfo> devices,
           const Colocation& colocation)
      : program_(program), devices_(devices), colocation_(colocation) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(find_classes());
    TAGFLOW_RETURN_IF_ERROR(find_bodies());
    for (const Change& change : changes_) {
      if (change.device != change.node->device())
        change.graph->set_device(change.node, change.device);
      if (change.node->attrs().contains(kClassAttr) || !change.label.empty())
        change.graph->set_attr(change.node, std::string(kClassAttr),
                               labels_of(change));
    }
    return {};
  }

 private:
  // The common constraint of some nodes.
  struct Shared {
    DeviceName device;
    std::string text;   // of the device; empty if all devices are allowed
    std::string label;  // empty for bodies
  };
  struct Change {
    Graph* graph = nullptr;
    Node* node = nullptr;
    std::string device;
    std::string label;
  };

  static std::vector<std::string> labels_of(const Change& change) {
    std::vector<std::string> labels;
    if (!change.label.empty()) labels.push_back(change.label);
    return labels;
  }

  // Names are cached, since a large graph repeats few of them.
  Result<const DeviceName*> parse(std::string_view text) {
    const auto it = names_.find(std::string(text));
    if (it != names_.end()) return &it->second;
    TAGFLOW_ASSIGN(DeviceName name, DeviceName::parse(text));
    return &names_.emplace(text, std::move(name)).first->second;
  }

  // Adds a node's constraint to the common one. The nodes have common devices,
  // so names do not contradict one another.
  Status add(Shared& shared, std::string_view constraint) {
    if (constraint.empty()) return {};
    TAGFLOW_ASSIGN(const DeviceName* name, parse(constraint));
    TAGFLOW_ASSIGN(shared.device, shared.device.merged(*name));
    return {};
  }

  void finish(Shared& shared) const {
    if (!std::ranges::all_of(devices_, [&](const DeviceInfo& device) {
          return shared.device.matches(device.name);
        }))
      shared.text = shared.device.to_string();
  }

  Status change(Graph& graph, Node* node, const Shared& shared) {
    // Keeps the node's own text if it has the same meaning.
    TAGFLOW_ASSIGN(const DeviceName* own, parse(node->device()));
    const bool is_own = !shared.text.empty() && *own == shared.device;
    changes_.push_back(
        {&graph, node, is_own ? node->device() : shared.text, shared.label});
    return {};
  }

  Status find_classes() {
    Graph& graph = program_.graph;
    std::unordered_map<uint32_t, Shared> classes;
    std::unordered_map<std::string_view, Shared> alone;  // by constraint
    const auto shared_by = [&](const Node& node) -> Shared& {
      const uint32_t number = colocation_.class_of(node);
      return number == Colocation::kNoClass
                 ? alone[colocation_.constraint_of(node)]
                 : classes[number];
    };
    for (const Node* node : graph.nodes()) {
      Shared& shared = shared_by(*node);
      TAGFLOW_RETURN_IF_ERROR(add(shared, colocation_.constraint_of(*node)));
      // On a single device, all nodes are together anyway.
      if (shared.label.empty() && devices_.size() > 1 &&
          colocation_.class_of(*node) != Colocation::kNoClass)
        shared.label = std::string(kClassPrefix) + node->name();
    }
    for (auto& [constraint, shared] : alone) finish(shared);
    for (auto& [number, shared] : classes) finish(shared);
    for (Node* node : graph.nodes())
      TAGFLOW_RETURN_IF_ERROR(change(graph, node, shared_by(*node)));
    return {};
  }

  Status find_bodies() {
    for (size_t b = 0; b < program_.bodies.size(); ++b) {
      Graph& graph = program_.bodies[b]->graph;
      Shared shared;
      for (const Node* node : graph.nodes())
        TAGFLOW_RETURN_IF_ERROR(
            add(shared, colocation_.constraint_of(*node, b)));
      finish(shared);
      for (Node* node : graph.nodes())
        TAGFLOW_RETURN_IF_ERROR(change(graph, node, shared));
    }
    return {};
  }

  Program& program_;
  const std::span<const DeviceInfo> devices_;
  const Colocation& colocation_;
  std::unordered_map<std::string, DeviceName> names_;
  // Applied at the end, since the nodes' texts are read before.
  std::vector<Change> changes_;
};

}  // namespace

Result<std::vector<std::string>> resolve_constraints(
    Program& program, std::span<const DeviceInfo> devices,
    const KernelCatalog& catalog, bool soft) {
  if (!has_constraints(program.graph) &&
      std::ranges::none_of(program.bodies, [](const auto& body) {
        return has_constraints(body->graph);
      }))
    return std::vector<std::string>();
  TAGFLOW_ASSIGN(const Colocation colocation,
                 Colocation::build(program, devices, catalog,
                                   {.soft = soft, .passes_follow = true}));
  std::vector<std::string> warnings = colocation.warnings();
  TAGFLOW_RETURN_IF_ERROR(Resolver(program, devices, colocation).run());
  return warnings;
}

}  // namespace tagflow::graph
