// The demands of each node on its device.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/placement/device_sets.h"
#include "graph/program.h"

namespace tagflow::graph {

// Whether an input or output is a reference, or a handle to an object that
// outlives the node.
bool has_handles(const Node& node);

struct Demand {
  DeviceSets::Id runnable = DeviceSets::kAll;   // where it can run
  DeviceSets::Id matching = DeviceSets::kAll;   // what its constraint matches
  DeviceSets::Id requested = DeviceSets::kAll;  // the part that applies
  bool stays_on_host = false;                   // Note [What stays on the host]

  bool operator==(const Demand&) const = default;
};

// Finds demands and describes them in messages. Each op with its types is
// looked up once.
//
// Besides kernels, it matters whether the host can access the device's memory.
//
// Note [What stays on the host]
// Strings cannot be copied to an accelerator as bytes, and fed tensors come
// from the host. So every node with such an input or output is on a device
// whose memory the host can access. A scope with an accelerator refers to the
// computing nodes; a node that stays on the host is silently placed there, and
// its outputs are copied. If its constraint matches only accelerators, the
// constraint is ignored, and the node is excluded from a class that only
// accelerators can run. A constraint that matches a host applies as usual.
//
// Handles are on the host too, but the objects that they refer to stay where
// they were made: ops on variables, lists, stacks and TensorArrays run on an
// accelerator that has kernels for them, ops on queues and tables stay on the
// host. A variant counts as a handle: elements of a list are where the list was
// made. All nodes that use one resource, or forward one list, are on one
// device. If their constraints conflict, those of nodes with handles are
// relaxed, with a warning. A fetched variant stays on the host, which reads it.
//
// Calls are on a host too, and so are the nodes of their functions: if these
// request an accelerator, that is rejected. Thread-compatible.
class Demands {
 public:
  // The arguments must outlive this.
  Demands(std::span<const DeviceInfo> devices, const KernelCatalog& catalog,
          DeviceSets& sets);

  // InvalidArgument if the constraint is not a valid device name. The demand of
  // a call excludes the needs of its function.
  Result<Demand> of(const Node& node);
  // Devices of the type "CPU", and those whose memory the host can access.
  DeviceSets::Id cpus() const { return cpus_; }
  DeviceSets::Id hosts() const { return hosts_; }
  // Why no device is both runnable and requested: `node "x" asks for "/gpu:0",
  // and there is no such device; the devices are ...`.
  std::string refusal(const Node& node, const Demand& demand) const;
  // Why a relaxed constraint was not met: `which does not exist`.
  std::string excuse(const Node& node, const Demand& demand) const;
  // The node's part in a message about a conflict: `"x" asks for "/gpu:0" and
  // has kernels for CPU`.
  std::string explain(const Node& node, const Demand& demand) const;

 private:
  DeviceSets::Id find_able(const Node& node);
  Result<DeviceSets::Id> find_asked(const Node& node);
  // What restricts the node: "has kernels for CPU".
  std::string limits_of(const Node& node, const Demand& demand) const;
  std::string names_of(DeviceSets::Id set) const;

  std::span<const DeviceInfo> devices_;
  const KernelCatalog& catalog_;
  DeviceSets& sets_;
  // Each device type with its devices.
  std::vector<std::pair<std::string, DeviceSets::Id>> types_;
  DeviceSets::Id hosts_ = DeviceSets::kAll;
  DeviceSets::Id cpus_ = DeviceSets::kAll;
  std::unordered_map<std::string, DeviceSets::Id> able_;  // by op and types
  std::unordered_map<std::string, DeviceSets::Id> asked_;
  std::string key_;  // reused buffer
};

}  // namespace tagflow::graph
