#include "actors/plan/state_groups.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "actors/plan/handle_uses.h"
#include "devices/state/resource_op.h"
#include "graph/analysis/dereference.h"
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

// The nodes that make resources or take their handles, and the groups that they
// form.
struct Ties {
  // A handle that a function takes, and the ops that the function applies to
  // it.
  struct Handed {
    const Node* source;
    const std::set<std::string>* ops;
  };

  explicit Ties(const graph::Graph& graph)
      : sets(graph.end_id()), uses(graph.library()) {
    std::map<devices::ResourceKey, const Node*> first;
    for (const Node* node : graph.nodes()) {
      if (const auto callees = uses.called(*node); !callees.empty()) {
        for (const HandleUses::Callee& callee : callees) hand(*node, callee);
        continue;
      }
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

  // Arguments that a function ties together are tied here.
  void hand(const Node& call, const HandleUses::Callee& callee) {
    const auto& [summary, begin] = callee;
    std::map<uint32_t, const Node*> source_of;  // by the set of the argument
    for (int i = std::max(0, -begin); i < call.num_inputs(); ++i) {
      const graph::Endpoint& input = call.inputs()[size_t(i)];
      const auto argument = uint32_t(begin + i);
      if (argument >= summary->ops.size() || !is_handle(input)) continue;
      handed.push_back({input.node, &summary->ops[argument]});
      const auto [entry, is_new] =
          source_of.emplace(summary->ties.find(argument), input.node);
      if (!is_new) sets.unite(entry->second->id(), input.node->id());
    }
  }

  graph::UnionFind sets;  // of node ids
  HandleUses uses;
  std::vector<const Node*> nodes;
  std::vector<Handed> handed;
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
    // An op without a kernel is reported elsewhere.
    const auto lacks = [&](const std::string& type) {
      return !catalog.has_kernel(*node, type);
    };
    if (std::ranges::all_of(types, lacks)) continue;
    group.restrict(lacks);
  }
  const auto restrict = [&](const Node* maker, const std::string& op) {
    const auto number = numbers.find(ties.sets.find(maker->id()));
    const std::vector<std::string> able = catalog.types_of(op);
    // An op without any kernel is performed by the engine, or not at all.
    if (number == numbers.end() || able.empty()) return;
    groups_[number->second].restrict([&](const std::string& type) {
      return std::ranges::find(able, type) == able.end();
    });
  };
  for (const Ties::Handed& handed : ties.handed)
    for (const std::string& op : *handed.ops) restrict(handed.source, op);
}

const StateGroups::Group* StateGroups::of(
    const devices::ResourceKey& resource) const {
  const auto it = group_of_.find(resource);
  return it == group_of_.end() ? nullptr : &groups_[it->second];
}

}  // namespace tagflow::actors
