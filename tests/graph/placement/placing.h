// Shared by tests of colocation.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/placement/colocation.h"
#include "tests/graph/placement/devices_and_kernels.h"

namespace tagflow::graph::testing {

// A graph, and what becomes of it on two CPUs and a STREAM.
struct Placing {
  Graph graph;
  Kernels kernels;
  std::vector<DeviceInfo> devices = make_devices(2, 1);
  ColocationOptions options;

  Result<Colocation> build() {
    const Program program = whole(graph.clone());
    return Colocation::build(program, devices, kernels, options);
  }
  std::string error() {
    return message_of(build().status(), Code::kInvalidArgument);
  }
  Node* put(std::string name, std::string_view op = "NoOp",
            std::string device = "", std::vector<Endpoint> inputs = {},
            AttrMap attrs = {}) {
    return on(
        graph,
        add(graph, std::move(name), op, std::move(inputs), std::move(attrs)),
        std::move(device));
  }
  Node* matrix(std::string name, std::string device = "") {
    return on(graph,
              constant(graph, std::move(name),
                       Tensor::make(DataType::kFloat, {2, 2})),
              std::move(device));
  }
};

inline AttrMap with(const std::string& label) {
  return {{"_class", std::vector<std::string>{"loc:@" + label}}};
}

inline std::string indices(std::span<const uint32_t> devices) {
  return fmt::format("{}", fmt::join(devices, " "));
}

inline constexpr std::string_view kDevices =
    "/job:localhost/replica:0/task:0/device:CPU:0, "
    "/job:localhost/replica:0/task:0/device:CPU:1, "
    "/job:localhost/replica:0/task:0/device:STREAM:0";

}  // namespace tagflow::graph::testing
