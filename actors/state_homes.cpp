#include "actors/state_homes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "devices/state/resource_op.h"
#include "graph/class_labels.h"
#include "graph/dereference.h"
#include "graph/device_name.h"
#include "graph/function.h"
#include "graph/placement/union_find.h"

namespace tagflow::actors {
namespace {

using devices::makes_resource;
using devices::resource_key;

// All memory of the host is one.
bool is_on_host(std::span<const graph::DeviceInfo> devices,
                const std::optional<std::string>& home, uint32_t device) {
  return devices[device].host_memory &&
         std::ranges::any_of(devices, [&](const graph::DeviceInfo& info) {
           return info.host_memory && info.name.to_string() == home;
         });
}

bool is_handle(const graph::Endpoint& endpoint) {
  const DataType type = endpoint.node->output_dtypes()[size_t(endpoint.port)];
  return is_ref(type) || type == DataType::kResource;
}

// Note [Homes of groups]
class Groups {
 public:
  struct Group {
    std::vector<const graph::Node*> makers;
    // The types of devices that all of its ops have kernels for.
    std::vector<std::string> types;
    bool is_anywhere = true;  // these are all types that there are
  };

  Groups(const graph::Graph& graph, std::span<const graph::DeviceInfo> devices,
         const graph::KernelCatalog& catalog) {
    if (std::ranges::none_of(graph.nodes(), [](const auto* node) {
          return makes_resource(*node);
        }))
      return;
    graph::UnionFind ties(graph.end_id());
    std::vector<const graph::Node*> tied;
    std::map<devices::ResourceKey, const graph::Node*> first;
    for (const graph::Node* node : graph.nodes()) {
      if (!graph::functions_of(node->attrs()).empty()) continue;
      bool is_tied = makes_resource(*node);
      if (is_tied)
        ties.unite(
            node->id(),
            first.emplace(resource_key(*node), node).first->second->id());
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        const graph::Endpoint& input = node->inputs()[i];
        if (!is_handle(input) || graph::reads_reference(*node, i)) continue;
        ties.unite(node->id(), input.node->id());
        is_tied = true;
      }
      if (is_tied) tied.push_back(node);
    }
    std::vector<std::string> types;
    for (const graph::DeviceInfo& device : devices)
      if (std::ranges::find(types, device.name.type) == types.end())
        types.push_back(device.name.type.value_or(""));
    for (const graph::Node* node : tied) {
      const auto [entry, is_new] = groups_.try_emplace(ties.find(node->id()));
      Group& group = entry->second;
      if (is_new) group.types = types;
      if (makes_resource(*node)) {
        group.makers.push_back(node);
        group_of_.emplace(resource_key(*node), &group);
      }
      // What has a kernel nowhere is an error elsewhere.
      const auto lacks = [&](const std::string& type) {
        return !catalog.has_kernel(*node, type);
      };
      if (std::ranges::all_of(types, lacks)) continue;
      group.is_anywhere &= std::erase_if(group.types, lacks) == 0;
    }
  }

  // Null where the whole graph has no such maker.
  const Group* of(const graph::Node& maker) const {
    const auto it = group_of_.find(resource_key(maker));
    return it == group_of_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<uint32_t, Group> groups_;
  std::map<devices::ResourceKey, const Group*> group_of_;
};

// Pins the makers of one program.
class Pinning {
 public:
  Pinning(const Groups& groups, std::span<const graph::DeviceInfo> devices,
          const devices::ResourceManager& resources)
      : groups_(groups), devices_(devices), resources_(resources) {}

  Status pin(graph::Graph& graph) {
    for (graph::Node* node : graph.nodes()) {
      if (!makes_resource(*node)) continue;
      TAGFLOW_ASSIGN(const auto asked,
                     graph::DeviceName::parse(node->device()));
      // What requests a device that does not exist is told so elsewhere.
      const bool exists = std::ranges::any_of(
          devices_, [&](const auto& info) { return asked.matches(info.name); });
      if (!exists) continue;
      if (const auto home = resources_.home(resource_key(*node))) {
        TAGFLOW_ASSIGN(const auto there, graph::DeviceName::parse(*home));
        if (!asked.matches(there))
          return invalid_argument(
              "[placement] node \"{}\" requests \"{}\", but \"{}\" has been on "
              "{} since it was made",
              node->name(), node->device(), resource_key(*node).name, *home);
        graph.set_device(node, *home);
      } else if (const Groups::Group* group = groups_.of(*node)) {
        TAGFLOW_RETURN_IF_ERROR(join(graph, node, asked, *group));
      }
    }
    return {};
  }
  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  Status join(graph::Graph& graph, graph::Node* node,
              const graph::DeviceName& asked, const Groups::Group& group) {
    for (const graph::Node* other : group.makers)
      if (const auto home = resources_.home(resource_key(*other))) {
        TAGFLOW_ASSIGN(const auto there, graph::DeviceName::parse(*home));
        if (!asked.matches(there))
          give_way(*node,
                   fmt::format("\"{}\", which some op takes together with it, "
                               "has been on {} since it was made",
                               resource_key(*other).name, *home));
        graph.set_device(node, *home);
        return {};
      }
    if (group.makers.size() > 1) {
      TAGFLOW_ASSIGN(const auto labels, graph::class_labels(*node));
      std::vector<std::string> all(labels.begin(), labels.end());
      all.push_back(std::string(graph::kClassPrefix) +
                    group.makers.front()->name());
      graph.set_attr(node, std::string(graph::kClassAttr), std::move(all));
    }
    return restrict(graph, node, asked, group);
  }

  // To the types of devices that all ops of the group have kernels for.
  Status restrict(graph::Graph& graph, graph::Node* node,
                  const graph::DeviceName& asked, const Groups::Group& group) {
    if (group.is_anywhere || group.types.empty()) return {};
    const auto can_have = [&](const graph::DeviceInfo& info) {
      return std::ranges::find(group.types, info.name.type.value_or("")) !=
             group.types.end();
    };
    const bool all_can = std::ranges::all_of(devices_, [&](const auto& info) {
      return !asked.matches(info.name) || can_have(info);
    });
    if (all_can) return {};
    // A name has one type or all.
    const auto host = std::ranges::find(group.types, "CPU");
    graph::DeviceName wanted;
    wanted.type = host == group.types.end() ? group.types.front() : *host;
    if (Result<graph::DeviceName> both = asked.merged(wanted); both.ok()) {
      wanted = *both;
    } else {
      give_way(*node,
               fmt::format("some op that takes it has kernels for {} only",
                           fmt::join(group.types, ", ")));
    }
    graph.set_device(node, wanted.to_string());
    return {};
  }

  void give_way(const graph::Node& node, const std::string& reason) {
    warnings_.push_back(
        fmt::format("[placement] node \"{}\" requests \"{}\", but {}",
                    node.name(), node.device(), reason));
  }

  const Groups& groups_;
  const std::span<const graph::DeviceInfo> devices_;
  const devices::ResourceManager& resources_;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<std::vector<std::string>> pin_state(
    graph::Program& program, const graph::Graph& whole,
    std::span<const graph::DeviceInfo> devices,
    const graph::KernelCatalog& catalog,
    const devices::ResourceManager& resources) {
  if (devices.size() < 2) return std::vector<std::string>();
  const Groups groups(whole, devices, catalog);
  Pinning pinning(groups, devices, resources);
  TAGFLOW_RETURN_IF_ERROR(pinning.pin(program.graph));
  for (const auto& body : program.bodies)
    TAGFLOW_RETURN_IF_ERROR(pinning.pin(body->graph));
  return pinning.take_warnings();
}

Status claim_homes(const graph::Program& program,
                   std::span<const graph::DeviceInfo> devices,
                   const graph::Placement& placement,
                   devices::ResourceManager& resources) {
  if (devices.size() < 2) return {};
  // What a body makes is where it is called; so is what it calls.
  std::vector<bool> is_known(program.bodies.size());
  std::vector<std::pair<const graph::Node*, uint32_t>> open;
  for (const graph::Node* node : program.graph.nodes())
    open.emplace_back(node, placement.device_of[node->id()]);
  while (!open.empty()) {
    const auto [node, device] = open.back();
    open.pop_back();
    if (makes_resource(*node) &&
        !resources.claim_home(resource_key(*node),
                              devices[device].name.to_string()) &&
        !is_on_host(devices, resources.home(resource_key(*node)), device))
      return error(
          Code::kAborted,
          "[placement] \"{}\" has been on {} since it was made, but "
          "some nodes of this run that use it can only be on {}",
          resource_key(*node).name,
          resources.home(resource_key(*node)).value_or("another device"),
          devices[device].name.to_string());
    if (node->op() != "_Call") continue;
    const auto body = size_t(node->attr<int64_t>("body").value());
    if (body >= is_known.size() || is_known[body]) continue;
    is_known[body] = true;
    for (const graph::Node* inner : program.bodies[body]->graph.nodes())
      open.emplace_back(inner, device);
  }
  return {};
}

}  // namespace tagflow::actors
