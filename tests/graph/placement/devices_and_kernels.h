// Devices and kernels that a test specifies.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/program.h"
#include "tests/graph/hand_made.h"

namespace tagflow::graph::testing {

// CPU:0, CPU:1, ..., then STREAM:0, ...: which are 100 times as fast, start a
// kernel in 5 us, and are 10 us and 10 bytes/ns away from the host.
inline std::vector<DeviceInfo> make_devices(int cpus, int streams = 0) {
  std::vector<DeviceInfo> devices;
  for (int i = 0; i < cpus; ++i) {
    DeviceInfo& device = devices.emplace_back();
    device.name = DeviceName::local("CPU", i);
  }
  for (int i = 0; i < streams; ++i) {
    DeviceInfo& device = devices.emplace_back();
    device.name = DeviceName::local("STREAM", i);
    device.host_memory = false;
    device.flops_per_ns = 800;
    device.bytes_per_ns = 800;
    device.launch_ns = 5'000;
    device.link_latency_ns = 10'000;
    device.link_bytes_per_ns = 10;
  }
  return devices;
}

// CPU:0 of task 0, then of task 1, ... of job "worker".
inline std::vector<DeviceInfo> make_workers(int tasks) {
  std::vector<DeviceInfo> devices;
  for (int task = 0; task < tasks; ++task)
    devices.emplace_back().name = {"worker", 0, task, "CPU", 0};
  return devices;
}

// Control flow has kernels everywhere, other ops on CPU but where `types` says
// otherwise. On a STREAM there are no kernels for int32.
class Kernels final : public KernelCatalog {
 public:
  std::map<std::string, std::vector<std::string>, std::less<>> types;
  mutable int questions = 0;

  // Ops that have kernels on both.
  static Kernels on_both(const std::vector<std::string>& ops) {
    Kernels kernels;
    for (const std::string& op : ops) kernels.types[op] = {"CPU", "STREAM"};
    return kernels;
  }

  bool has_kernel(const Node& node, std::string_view type) const override {
    ++questions;
    if (node.is_switch() || node.is_merge() || node.is_enter() ||
        node.is_exit() || node.is_next_iteration() || node.is_loop_cond() ||
        node.is_control_trigger() || node.op() == "NoOp")
      return true;
    if (type == "STREAM" && node.num_outputs() > 0 &&
        node.output_dtypes()[0] == DataType::kInt32)
      return false;
    for (const std::string& known : types_of(node.op()))
      if (known == type) return true;
    return false;
  }
  std::vector<std::string> types_of(std::string_view op) const override {
    const auto it = types.find(op);
    return it == types.end() ? std::vector<std::string>{"CPU"} : it->second;
  }
};

inline Node* on(Graph& graph, Node* node, std::string device) {
  graph.set_device(node, std::move(device));
  return node;
}

// A program of all the graph's nodes, without feeds and fetches.
inline Program whole(Graph graph) {
  Program program;
  program.graph = std::move(graph);
  return program;
}

}  // namespace tagflow::graph::testing
