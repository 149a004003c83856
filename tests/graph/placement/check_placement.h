// Properties of every placement.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tests/graph/placement/devices_and_kernels.h"

namespace tagflow::graph::testing {

// Each node is where it can be and may be; what may not be on two devices is
// on one.
inline void check_placement(const Program& program,
                            std::span<const DeviceInfo> devices,
                            const KernelCatalog& kernels,
                            const Placement& placement) {
  const Graph& graph = program.graph;
  REQUIRE(placement.device_of.size() == graph.end_id());
  std::map<std::string, uint32_t> of_class;
  const auto device_of = [&](const Node* node) {
    return placement.device_of[node->id()];
  };
  for (const Node* node : graph.nodes()) {
    CAPTURE(node->name());
    REQUIRE(device_of(node) < devices.size());
    const DeviceInfo& device = devices[device_of(node)];
    CHECK(must(DeviceName::parse(node->device())).matches(device.name));
    if (node->op() == "Placeholder") {
      CHECK(device.host_memory);
    } else {
      CHECK(kernels.has_kernel(*node, *device.name.type));
    }
    if (node->attrs().contains("_class")) {
      const auto labels = must(node->attr<std::vector<std::string>>("_class"));
      for (const std::string& label : labels)
        CHECK(of_class.emplace(label, device_of(node)).first->second ==
              device_of(node));
    }
    for (const Endpoint& input : node->inputs()) {
      const DataType type = input.node->output_dtypes()[size_t(input.port)];
      const bool comes_and_goes =
          input.node->is_next_iteration() ||
          (input.node->is_enter() && !input.node->is_constant_enter());
      if (type == DataType::kResource || (node->is_merge() && comes_and_goes))
        CHECK(device_of(input.node) == device_of(node));
    }
  }
}

}  // namespace tagflow::graph::testing
