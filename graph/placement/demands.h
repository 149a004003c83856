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

struct Demand {
  DeviceSets::Id able = DeviceSets::kAll;   // where it can run
  DeviceSets::Id asked = DeviceSets::kAll;  // what its constraint matches

  bool operator==(const Demand&) const = default;
};

// Finds demands, and says them in words. Kernels are asked for once for each
// op with its types.
//
// Besides kernels, what counts is whether the host reads the device's memory.
// Only there are Placeholders, which are fed, and calls; and whatever has to
// do with strings and variants, which are no bytes that could be copied.
// Thread-compatible.
class Demands {
 public:
  // The arguments must outlive this.
  Demands(std::span<const DeviceInfo> devices, const KernelCatalog& catalog,
          DeviceSets& sets);

  // InvalidArgument where the constraint is no name of a device. Of a call,
  // without what its function needs.
  Result<Demand> of(const Node& node);
  // Those of the type "CPU".
  DeviceSets::Id cpus() const { return cpus_; }
  // Why no device is both able and asked: `node "x" asks for "/gpu:0", and
  // there is no such device; the devices are ...`.
  std::string refusal(const Node& node, const Demand& demand) const;
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
