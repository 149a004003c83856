// Programs cut along placements made by hand.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/analysis/validate.h"
#include "graph/partition/partition.h"
#include "tests/graph/passes/whole_program.h"

namespace tagflow::graph::testing {

// CPUs 0 to count - 1 of this process, with incarnations 100, 101, ...
inline std::vector<DeviceInfo> cpus(int count) {
  std::vector<DeviceInfo> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    devices[size_t(i)].name = DeviceName::local("CPU", i);
    devices[size_t(i)].incarnation = uint64_t(100 + i);
  }
  return devices;
}

// The device of each node by the longest of these names that its own starts
// with; 0 if there is none.
using Places = std::map<std::string, uint32_t>;

inline Placement place(const Graph& graph, const Places& places) {
  Placement placement;
  placement.device_of.resize(graph.end_id());
  for (const Node* node : graph.nodes()) {
    size_t longest = 0;
    for (const auto& [name, device] : places) {
      if (!node->name().starts_with(name) || name.size() <= longest) continue;
      longest = name.size();
      placement.device_of[node->id()] = device;
    }
  }
  return placement;
}

// What becomes of the program; every part of it is valid.
struct Cut {
  Cut(Program program, const Places& places, std::vector<DeviceInfo> on,
      const PartitionOptions& options = {})
      : devices(std::move(on)) {
    const Placement placement = place(program.graph, places);
    parts = must(partition(std::move(program), devices, placement, options));
    for (const Partition& part : parts) must(validate(part.program.graph));
  }

  const Program& on(uint32_t device) const {
    for (const Partition& part : parts)
      if (part.device == device) return part.program;
    FAIL("no partition for device ", device);
    return parts[0].program;
  }
  // The device's nodes as text.
  std::string text(uint32_t device) const { return dump(on(device).graph); }
  // One node.
  std::string line(uint32_t device, std::string_view name) const {
    return dump(on(device).graph, name);
  }
  const Node& node(uint32_t device, std::string_view name) const {
    const Node* found = on(device).graph.find(name);
    if (found == nullptr) FAIL("no node ", std::string(name));
    return *found;
  }
  size_t count(uint32_t device, std::string_view op) const {
    size_t found = 0;
    for (const Node* node : on(device).graph.nodes()) found += node->op() == op;
    return found;
  }

  std::vector<DeviceInfo> devices;
  std::vector<Partition> parts;
};

inline std::string text_of(const Node& node, const char* attr) {
  return must(node.attr<std::string>(attr));
}

// The message with which the cut is refused.
inline std::string refusal(Program program, const Places& places,
                           const std::vector<DeviceInfo>& devices) {
  const Placement placement = place(program.graph, places);
  return message_of(partition(std::move(program), devices, placement).status(),
                    Code::kInvalidArgument);
}

}  // namespace tagflow::graph::testing
