#include "actors/plan/state_homes.h"

#include <algorithm>
#include <map>

#include "devices/random_key.h"
#include "devices/state/resource_op.h"
#include "graph/analysis/class_labels.h"
#include "graph/device_name.h"

namespace tagflow::actors {
namespace {

using devices::ResourceKey;
using devices::ResourceManager;
using Homes = ResourceManager::Homes;

// Null if it has none.
const std::string* find_home(const Homes& homes, const ResourceKey& key) {
  const auto it = homes.find(key);
  return it == homes.end() ? nullptr : &it->second;
}

bool are_in_one_task(std::span<const graph::DeviceInfo> devices) {
  return std::ranges::all_of(devices, [&](const graph::DeviceInfo& info) {
    return graph::in_one_task(info.name, devices[0].name);
  });
}

// Of the count of a random op: Note [Homes of counts].
ResourceKey count_key(const graph::Node& node) {
  return {"", "count of runs", node.name()};
}

bool has_count(const graph::Node& node) {
  return devices::counts_runs(node) && !devices::makes_resource(node);
}

// Pins the makers of one program.
class Pinning {
 public:
  Pinning(const StateGroups& groups, std::span<const graph::DeviceInfo> devices,
          const Homes& homes, bool is_soft)
      : groups_(groups),
        devices_(devices),
        homes_(homes),
        is_soft_(is_soft),
        pins_counts_(!are_in_one_task(devices)) {}

  Status pin(graph::Graph& graph) {
    for (graph::Node* node : graph.nodes()) {
      if (pins_counts_ && has_count(*node))
        TAGFLOW_RETURN_IF_ERROR(pin_count(graph, node));
      if (!devices::makes_resource(*node)) continue;
      TAGFLOW_ASSIGN(auto asked, graph::DeviceName::parse(node->device()));
      // A request of a device that does not exist is reported elsewhere. Soft
      // placement drops it.
      const bool exists = std::ranges::any_of(
          devices_, [&](const auto& info) { return asked.matches(info.name); });
      if (!exists && !is_soft_) continue;
      if (!exists) asked = {};
      const ResourceKey key = devices::resource_key(*node);
      const StateGroups::Group* group = groups_.of(key);
      if (const std::string* home = find_home(homes_, key)) {
        TAGFLOW_ASSIGN(const auto there, graph::DeviceName::parse(*home));
        if (!asked.matches(there)) {
          const std::string reason = fmt::format(
              "\"{}\" has been on {} since it was made", key.name, *home);
          if (group == nullptr || !was_relaxed(*group, key, *home, asked))
            return invalid_argument("{}", refusal(*node, reason));
          relax(*node, reason);
        }
        graph.set_device(node, *home);
      } else if (group != nullptr) {
        TAGFLOW_RETURN_IF_ERROR(join(graph, node, asked, *group));
      }
    }
    return {};
  }
  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  Status pin_count(graph::Graph& graph, graph::Node* node) const {
    const std::string* const home = find_home(homes_, count_key(*node));
    if (home == nullptr) return {};
    TAGFLOW_ASSIGN(graph::DeviceName task, graph::DeviceName::parse(*home));
    task.type.reset();
    task.id.reset();
    TAGFLOW_ASSIGN(const auto asked, graph::DeviceName::parse(node->device()));
    // What the graph requests comes first.
    if (node->attrs().contains(graph::kClassAttr)) return {};
    if (const auto both = asked.merged(task); both.ok())
      graph.set_device(node, both->to_string());
    return {};
  }

  Status join(graph::Graph& graph, graph::Node* node,
              const graph::DeviceName& asked, const StateGroups::Group& group) {
    for (const ResourceKey& other : group.resources)
      if (const std::string* home = find_home(homes_, other)) {
        TAGFLOW_ASSIGN(const auto there, graph::DeviceName::parse(*home));
        if (!asked.matches(there))
          relax(*node,
                fmt::format("\"{}\", which some op takes together with it, "
                            "has been on {} since it was made",
                            other.name, *home));
        graph.set_device(node, *home);
        return {};
      }
    if (group.resources.size() > 1) {
      TAGFLOW_ASSIGN(const auto labels, graph::class_labels(*node));
      std::vector<std::string> all(labels.begin(), labels.end());
      all.push_back(std::string(graph::kClassPrefix) + group.first_maker);
      graph.set_attr(node, std::string(graph::kClassAttr), std::move(all));
    }
    return restrict(graph, node, asked, group);
  }

  // Restricts the node to the types of devices that have kernels for all ops of
  // the group.
  Status restrict(graph::Graph& graph, graph::Node* node,
                  const graph::DeviceName& asked,
                  const StateGroups::Group& group) {
    const bool all_can = std::ranges::all_of(devices_, [&](const auto& info) {
      return !asked.matches(info.name) || can_have(group, info);
    });
    if (all_can) return {};
    // A device name can state one type or none.
    const auto host = std::ranges::find(group.types, "CPU");
    graph::DeviceName wanted;
    wanted.type = host == group.types.end() ? group.types.front() : *host;
    if (Result<graph::DeviceName> both = asked.merged(wanted); both.ok()) {
      wanted = *both;
    } else {
      relax(*node, fmt::format("some op that takes it has kernels for {} only",
                               fmt::join(group.types, ", ")));
    }
    graph.set_device(node, wanted.to_string());
    return {};
  }

  static bool can_have(const StateGroups::Group& group,
                       const graph::DeviceInfo& info) {
    return group.is_anywhere || group.types.empty() ||
           std::ranges::find(group.types, info.name.type.value_or("")) !=
               group.types.end();
  }

  // Whether the rest of its group is the reason that a resource is not on the
  // device that a node requests.
  bool was_relaxed(const StateGroups::Group& group, const ResourceKey& key,
                   const std::string& home,
                   const graph::DeviceName& asked) const {
    const auto is_beside = [&](const ResourceKey& other) {
      const std::string* const there = find_home(homes_, other);
      return other != key && there != nullptr && *there == home;
    };
    return std::ranges::any_of(group.resources, is_beside) ||
           std::ranges::none_of(devices_, [&](const auto& info) {
             return asked.matches(info.name) && can_have(group, info);
           });
  }

  static std::string refusal(const graph::Node& node,
                             const std::string& reason) {
    return fmt::format("[placement] node \"{}\" requests \"{}\", but {}",
                       node.name(), node.device(), reason);
  }
  void relax(const graph::Node& node, const std::string& reason) {
    warnings_.push_back(refusal(node, reason));
  }

  const StateGroups& groups_;
  const std::span<const graph::DeviceInfo> devices_;
  const Homes& homes_;
  const bool is_soft_;
  const bool pins_counts_;
  std::vector<std::string> warnings_;
};

// Claims the homes of the resources that one program makes.
class Claiming {
 public:
  Claiming(const StateGroups& groups,
           std::span<const graph::DeviceInfo> devices, const Homes& homes)
      : groups_(groups),
        devices_(devices),
        homes_(homes),
        pins_counts_(!are_in_one_task(devices)) {}

  // Adds a node that is placed on a device.
  Status add(const graph::Node& node, uint32_t device) {
    if (pins_counts_ && has_count(node)) {
      ResourceKey count = count_key(node);
      if (!homes_.contains(count))
        wanted_.try_emplace(std::move(count),
                            devices_[device].name.to_string());
      return {};
    }
    if (!devices::makes_resource(node)) return {};
    ResourceKey key = devices::resource_key(node);
    if (const std::string* home = find_home(homes_, key)) {
      if (is_at(device, *home)) return {};
      return error(Code::kFailedPrecondition, "{}",
                   differs(key, *home, device));
    }
    const auto [it, is_new] =
        wanted_.try_emplace(key, devices_[device].name.to_string());
    if (!is_new && !is_at(device, it->second) && conflict_.ok())
      conflict_ = error(Code::kAborted, "{}", differs(key, it->second, device));
    return {};
  }

  Status claim(ResourceManager& resources) const {
    std::vector<ResourceManager::HomeRequest> claims;
    for (const auto& [key, device] : wanted_)
      claims.push_back({key, device, tied_to(key)});
    if (!resources.request_homes(claims))
      return error(Code::kAborted,
                   "[placement] another session that shares the state has "
                   "placed some of it meanwhile");
    // If nodes of one resource are on different devices, the next try knows its
    // home.
    return conflict_;
  }

 private:
  // The resources of its group. Empty if one of them already had a home when
  // this resource was placed: then that home decided.
  std::span<const ResourceKey> tied_to(const ResourceKey& key) const {
    const StateGroups::Group* group = groups_.of(key);
    if (group == nullptr ||
        std::ranges::any_of(group->resources, [&](const ResourceKey& other) {
          return homes_.contains(other);
        }))
      return {};
    return group->resources;
  }

  // All CPUs of a process share its memory.
  bool is_at(uint32_t device, const std::string& home) const {
    if (devices_[device].name.to_string() == home) return true;
    return std::ranges::any_of(devices_, [&](const graph::DeviceInfo& info) {
      return graph::share_memory(info, devices_[device]) &&
             info.name.to_string() == home;
    });
  }

  std::string differs(const ResourceKey& key, const std::string& home,
                      uint32_t device) const {
    return fmt::format(
        "[placement] \"{}\" has been on {} since it was made, but some nodes "
        "of this run that use it can only be on {}",
        key.name, home, devices_[device].name.to_string());
  }

  const StateGroups& groups_;
  const std::span<const graph::DeviceInfo> devices_;
  const Homes& homes_;
  const bool pins_counts_;
  std::map<ResourceKey, std::string> wanted_;
  Status conflict_;  // the first, if any
};

}  // namespace

Result<std::vector<std::string>> pin_state(
    graph::Program& program, const StateGroups& groups,
    std::span<const graph::DeviceInfo> devices, const Homes& homes,
    bool is_soft) {
  if (devices.size() < 2) return std::vector<std::string>();
  Pinning pinning(groups, devices, homes, is_soft);
  TAGFLOW_RETURN_IF_ERROR(pinning.pin(program.graph));
  for (const auto& body : program.bodies)
    TAGFLOW_RETURN_IF_ERROR(pinning.pin(body->graph));
  return pinning.take_warnings();
}

Status request_homes(const graph::Program& program, const StateGroups& groups,
                     std::span<const graph::DeviceInfo> devices,
                     const graph::Placement& placement, const Homes& homes,
                     ResourceManager& resources) {
  if (devices.size() < 2) return {};
  Claiming claiming(groups, devices, homes);
  // Resources that a body makes are on the device of its call, and so are those
  // of functions that it calls.
  std::vector<bool> is_known(program.bodies.size());
  std::vector<std::pair<const graph::Node*, uint32_t>> open;
  for (const graph::Node* node : program.graph.nodes())
    open.emplace_back(node, placement.device_of[node->id()]);
  while (!open.empty()) {
    const auto [node, device] = open.back();
    open.pop_back();
    TAGFLOW_RETURN_IF_ERROR(claiming.add(*node, device));
    if (node->op() != "_Call") continue;
    const auto body = size_t(node->attr<int64_t>("body").value());
    if (body >= is_known.size() || is_known[body]) continue;
    is_known[body] = true;
    for (const graph::Node* inner : program.bodies[body]->graph.nodes())
      open.emplace_back(inner, device);
  }
  return claiming.claim(resources);
}

}  // namespace tagflow::actors
