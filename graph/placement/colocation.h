// Which nodes must be on one device, and on which they can be.
//
// Note [Groups]
// Nodes are in one group where
//   - an attribute `_class` lists "loc:@NAME": with the node of that name and
//     with all others that list it, also where there is no such node. These
//     are a class; what stays on the host (Note [What stays on the host]) has
//     no part in one that only accelerators can hold;
//   - a reference, a resource or a variant goes from one to the other: what it
//     stands for is on one device;
//   - a loop's back edge, or the edge of an Enter that is no constant, leads
//     into a Merge; or the loop cannot be cut (Note [Loops that can be cut]).
// A group runs where all of its nodes can and each may by its constraint.
// Then, where that leaves a device, control flow joins its data: Switch and
// Exit that which they read, Enter and NextIteration the first that reads
// them.
//
// A function that runs in frames of its own is on the device of its call: the
// call asks for all that the nodes of the body do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/placement/device_sets.h"
#include "graph/program.h"

namespace tagflow::graph {

struct ColocationOptions {
  // A constraint that cannot be met gives way, with a warning: to the devices
  // of type CPU, or, within a group, to what the others of the group need.
  bool soft = false;
  // The program is still to be rewritten: a node that has a kernel nowhere is
  // no error yet.
  bool passes_follow = false;
};

// What counts of a node's constraint.
enum class Counting : uint8_t { kAll, kNothing, kAnyCpu };

// The groups of one program's graph, numbered from 0 on in the order of their
// first nodes. Immutable; valid while the graph is unchanged. Thread-safe.
class Colocation {
 public:
  // InvalidArgument where a constraint or a class is malformed, or matches no
  // device, or only such as have no kernel of the op; where a node has a kernel
  // nowhere; and where the nodes of a group have no device in common. The
  // message names nodes, constraints, the types of devices that there are
  // kernels for, and what ties the nodes together. The devices and the catalog
  // are not needed later on.
  // REQUIRES: the program is valid, and its functions are lowered.
  static Result<Colocation> build(const Program& program,
                                  std::span<const DeviceInfo> devices,
                                  const KernelCatalog& catalog,
                                  const ColocationOptions& options = {});

  size_t size() const { return set_of_.size(); }
  uint32_t group_of(const Node& node) const { return group_of_[node.id()]; }
  // Indices of devices, ascending; at least one.
  std::span<const uint32_t> devices_of(uint32_t group) const {
    return sets_.of(set_of_[group]);
  }
  // What the node asks for itself and gets; "" for nothing, "/device:CPU:*"
  // where that is what its constraint gave way to.
  std::string_view constraint_of(const Node& node) const {
    return text(node, counting_.front()[node.id()]);
  }
  // The same of a node of the program's body of that number.
  std::string_view constraint_of(const Node& node, size_t body) const {
    return text(node, counting_[body + 1][node.id()]);
  }
  bool is_constrained(const Node& node) const {
    return !constraint_of(node).empty();
  }
  // A number that the node shares with its class, and with all that must be
  // where that is; kNoClass where there is no class.
  static constexpr uint32_t kNoClass = ~uint32_t(0);
  uint32_t class_of(const Node& node) const { return class_of_[node.id()]; }
  // Which constraints gave way, and why.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  class Builder;
  explicit Colocation(DeviceSets sets) : sets_(std::move(sets)) {}
  static std::string_view text(const Node& node, Counting counting);

  DeviceSets sets_;
  std::vector<uint32_t> group_of_;  // by node id
  std::vector<DeviceSets::Id> set_of_;
  std::vector<uint32_t> class_of_;  // by node id
  // Of the graph, then of each body, by node id.
  std::vector<std::vector<Counting>> counting_;
  std::vector<std::string> warnings_;
};

}  // namespace tagflow::graph
