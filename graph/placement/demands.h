// What each node asks of the device that it runs on.
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

// Whether a handle of what outlives the node, or a reference, goes in or out.
bool has_handles(const Node& node);

struct Demand {
  DeviceSets::Id runnable = DeviceSets::kAll;   // where it can run
  DeviceSets::Id matching = DeviceSets::kAll;   // what its constraint matches
  DeviceSets::Id requested = DeviceSets::kAll;  // what counts of that
  bool stays_on_host = false;                   // Note [What stays on the host]

  bool operator==(const Demand&) const = default;
};

// Finds demands, and says them in words. Kernels are asked for once for each
// op with its types.
//
// Besides kernels, what counts is whether the host reads the device's memory.
//
// Note [What stays on the host]
// Strings are no bytes that could be copied to an accelerator, and what is fed
// comes from the host. So whatever has to do with them, as an input or output,
// is on a device whose memory the host reads. A scope that asks for an
// accelerator means what computes there; such a node is then on a host, without
// a word, and hands over what is read. It asks for nothing where its constraint
// matches accelerators only, and has no part in a class that only these can
// hold. A constraint that matches a host counts as any other.
//
// Handles are the host's, too, but what they stand for is where it was made:
// ops on variables, lists, stacks and TensorArrays run on an accelerator that
// has kernels for them, while those on queues and tables stay on the host. A
// variant counts as a handle: the elements of a list are where the list was
// made. All that has to do with one resource, or hands on one list, is on one
// device; where constraints differ there, those of nodes with handles give way,
// with a warning. A variant that is fetched is for the host to look into: it
// stays there.
//
// Calls are on a host, too, and with them what their functions compute: so an
// accelerator that these ask for is refused.
// Thread-compatible.
class Demands {
 public:
  // The arguments must outlive this.
  Demands(std::span<const DeviceInfo> devices, const KernelCatalog& catalog,
          DeviceSets& sets);

  // InvalidArgument where the constraint is no name of a device. Of a call,
  // without what its function needs.
  Result<Demand> of(const Node& node);
  // Those of the type "CPU", and those whose memory the host reads.
  DeviceSets::Id cpus() const { return cpus_; }
  DeviceSets::Id hosts() const { return hosts_; }
  // Why no device is both runnable and requested: `node "x" asks for "/gpu:0",
  // and there is no such device; the devices are ...`.
  std::string refusal(const Node& node, const Demand& demand) const;
  // The same of a constraint that gives way: `which does not exist`.
  std::string excuse(const Node& node, const Demand& demand) const;
  // Its part in a conflict of several: `"x" asks for "/gpu:0" and has kernels
  // for CPU`.
  std::string explain(const Node& node, const Demand& demand) const;

 private:
  DeviceSets::Id find_able(const Node& node);
  Result<DeviceSets::Id> find_asked(const Node& node);
  // What it takes to run the node: "has kernels for CPU".
  std::string limits_of(const Node& node, const Demand& demand) const;
  std::string names_of(DeviceSets::Id set) const;

  std::span<const DeviceInfo> devices_;
  const KernelCatalog& catalog_;
  DeviceSets& sets_;
  // Each type of device, and the devices of it.
  std::vector<std::pair<std::string, DeviceSets::Id>> types_;
  DeviceSets::Id hosts_ = DeviceSets::kAll;
  DeviceSets::Id cpus_ = DeviceSets::kAll;
  std::unordered_map<std::string, DeviceSets::Id> able_;  // by op and types
  std::unordered_map<std::string, DeviceSets::Id> asked_;
  std::string key_;  // kept for its memory
};

}  // namespace tagflow::graph
