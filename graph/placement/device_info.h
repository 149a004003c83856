// Properties of devices for placement and partitioning: names and numbers only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/device_name.h"
#include "graph/node.h"

namespace tagflow::graph {

struct DeviceInfo {
  DeviceName name;           // full
  uint64_t incarnation = 1;  // changes with each restart; in transfer keys
  // Whether the host can access its tensors directly. Feeds and fetches are on
  // such a device.
  bool host_memory = true;
  int64_t memory_limit = 0;      // bytes; 0: none
  double flops_per_ns = 8;       // of one kernel
  double bytes_per_ns = 8;       // of one kernel that is bound by memory
  double launch_ns = 100;        // for each kernel
  int kernels_at_once = 1;       // workers, or streams
  double link_latency_ns = 0;    // of a copy between it and the host
  double link_bytes_per_ns = 0;  // 0: no copies are needed
};

// Whether both are devices of one process: of one job, replica and task.
bool in_one_task(const DeviceName& a, const DeviceName& b);
// Whether a tensor of one is a tensor of the other: both use the memory of the
// host of their process.
bool share_memory(const DeviceInfo& a, const DeviceInfo& b);

// Which kernels exist: the view of the registry of devices/ from here.
class KernelCatalog {
 public:
  virtual ~KernelCatalog() = default;
  // Whether the node, with its attributes, has a kernel for devices of the
  // type. Control flow runs everywhere. Thread-safe.
  virtual bool has_kernel(const Node& node, std::string_view type) const = 0;
  // The device types that have any kernel of the op, each once.
  virtual std::vector<std::string> types_of(std::string_view op) const = 0;
  // Why an op may have no kernels at all, for messages; "" if nothing is to
  // be said.
  virtual std::string why_missing() const { return ""; }
};

// Where each node of a graph runs.
struct Placement {
  std::vector<uint32_t> device_of;  // by node id: an index into the devices
};

}  // namespace tagflow::graph
