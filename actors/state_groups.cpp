#include "actors/state_groups.h"

#include <algorithm>
#include <unordered_map>

#include "actors/handle_uses.h"
#include "devices/state/resource_op.h"
#include "graph/dereference.h"
#include "graph/function.h"
#include "graph/placement/union_find.h"

namespace tagflow::actors {
namespace {

using devices::makes_resource;
using devices::resource_key;
using graph::Node;

bool is_handle(const graph::Endpoint& endpoint) {
  const DataType type = endpoint.node->output_dtypes()[size_t(endpoint.port)];
  return is_ref(type) || type == DataType::kResource;
}

std::vector<std::string> types_of(std::span<const graph::DeviceInfo> devices) {
  std::vector<std::string> types;
  for (const graph::DeviceInfo& device : devices)
    if (std::ranges::find(types, device.name.type) == types.end())
      types.push_back(device.name.type.value_or(""));
  return types;
}

// The nodes that make resources or take their handles, and what ties them.
struct Ties {
  explicit Ties(const graph::Graph& graph) : sets(graph.end_id()) {
    std::map<devices::ResourceKey, const Node*> first;
    for (const Node* node : graph.nodes()) {
      if (!graph::functions_of(node->attrs()).empty()) continue;
      bool is_tied = makes_resource(*node);
      if (is_tied)
        sets.unite(
            node->id(),
            first.emplace(resource_key(*node), node).first->second->id());
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        const graph::Endpoint& input = node->inputs()[i];
        if (!is_handle(input) || graph::reads_reference(*node, i)) continue;
        sets.unite(node->id(), input.node->id());
        is_tied = true;
      }
      if (is_tied) nodes.push_back(node);
    }
  }

  graph::UnionFind sets;  // of node ids
  std::vector<const Node*> nodes;
};

}  // namespace

StateGroups::StateGroups(const graph::Graph& graph,
                         std::span<const graph::DeviceInfo> devices,
                         const graph::KernelCatalog& catalog)
    : end_id_(graph.end_id()) {
  const auto makes = [](const Node* node) { return makes_resource(*node); };
  if (devices.size() < 2 || std::ranges::none_of(graph.nodes(), makes)) return;
  Ties ties(graph);
  const std::vector<std::string> types = types_of(devices);
  std::unordered_map<uint32_t, size_t> numbers;  // by set
  for (const Node* node : ties.nodes) {
    const auto [entry, is_new] =
        numbers.try_emplace(ties.sets.find(node->id()), groups_.size());
    if (is_new) groups_.emplace_back().types = types;
    Group& group = groups_[entry->second];
    if (makes_resource(*node)) {
      devices::ResourceKey key = resource_key(*node);
      if (group.resources.empty()) group.first_maker = node->name();
      if (group_of_.emplace(key, entry->second).second)
        group.resources.push_back(std::move(key));
    }
    // What has a kernel nowhere is an error elsewhere.
    const auto lacks = [&](const std::string& type) {
      return !catalog.has_kernel(*node, type);
    };
    if (std::ranges::all_of(types, lacks)) continue;
    group.restrict(lacks);
  }
  HandleUses uses(graph.library());
  for (const Node* node : graph.nodes()) {
    if (!uses.is_call(*node)) continue;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const graph::Endpoint& input = node->inputs()[size_t(i)];
      if (!is_handle(input)) continue;
      const auto number = numbers.find(ties.sets.find(input.node->id()));
      if (number == numbers.end()) continue;
      uses.visit(*node, i, [&](const std::string& op) {
        const std::vector<std::string> able = catalog.types_of(op);
        if (able.empty()) return;  // the engine performs it, or nobody
        groups_[number->second].restrict([&](const std::string& type) {
          return std::ranges::find(able, type) == able.end();
        });
      });
    }
  }
}

const StateGroups::Group* StateGroups::of(
    const devices::ResourceKey& resource) const {
  const auto it = group_of_.find(resource);
  return it == group_of_.end() ? nullptr : &groups_[it->second];
}

}  // namespace tagflow::actors
