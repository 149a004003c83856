#include "actors/state_homes.h"

#include <algorithm>

#include "devices/state/resource_op.h"
#include "graph/device_name.h"

namespace tagflow::actors {
namespace {

// By the op: what it makes is found by a name.
bool makes_state(const graph::Node& node) {
  if (!node.op_def().is_stateful || node.num_outputs() != 1) return false;
  const DataType type = node.output_dtypes()[0];
  return (is_ref(type) || type == DataType::kResource) &&
         node.attrs().contains("shared_name");
}

// Homes are known by op: that is what a kind is, but for what only the kernel
// knows.
devices::ResourceKey home_key(const graph::Node& node) {
  return devices::resource_key(node, node.op());
}

// All memory of the host is one.
bool is_on_host(std::span<const graph::DeviceInfo> devices,
                const std::optional<std::string>& home, uint32_t device) {
  return devices[device].host_memory &&
         std::ranges::any_of(devices, [&](const graph::DeviceInfo& info) {
           return info.host_memory && info.name.to_string() == home;
         });
}

}  // namespace

Status pin_state(graph::Program& program,
                 std::span<const graph::DeviceInfo> devices,
                 const devices::ResourceManager& resources) {
  if (devices.size() < 2) return {};
  const auto pin = [&](graph::Graph& graph) -> Status {
    for (graph::Node* node : graph.nodes()) {
      if (!makes_state(*node)) continue;
      const auto home = resources.home(home_key(*node));
      if (!home) continue;
      if (!node->device().empty()) {
        TAGFLOW_ASSIGN(const auto asked,
                       graph::DeviceName::parse(node->device()));
        TAGFLOW_ASSIGN(const auto there, graph::DeviceName::parse(*home));
        // What asks for a device that does not exist is told so elsewhere.
        const bool exists = std::ranges::any_of(devices, [&](const auto& info) {
          return asked.matches(info.name);
        });
        if (exists && !asked.matches(there))
          return invalid_argument(
              "[placement] node \"{}\" requests \"{}\", but \"{}\" has been on "
              "{} since it was made",
              node->name(), node->device(), home_key(*node).name, *home);
        if (!exists) continue;
      }
      graph.set_device(node, *home);
    }
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(pin(program.graph));
  for (const auto& body : program.bodies)
    TAGFLOW_RETURN_IF_ERROR(pin(body->graph));
  return {};
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
    if (makes_state(*node) &&
        !resources.claim_home(home_key(*node),
                              devices[device].name.to_string()) &&
        !is_on_host(devices, resources.home(home_key(*node)), device))
      return error(Code::kAborted,
                   "[placement] \"{}\" has been on {} since it was made, but "
                   "some nodes of this run that use it can only be on {}",
                   home_key(*node).name,
                   resources.home(home_key(*node)).value_or("another device"),
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
