// Colocation: groups of nodes that must share a device, and their devices.
//
// Note [Groups]
// Two nodes are in one group if
//   - they are in one class: an attribute `_class` of both lists the same
//     "loc:@NAME", or one is the node NAME. NAME need not exist. Nodes that
//     stay on the host (Note [What stays on the host]) are excluded from a
//     class that only accelerators can run;
//   - a reference, a resource or a variant goes from one to the other, since
//     the object that it refers to is on one device;
//   - a loop's back edge, or an Enter's edge that is not constant, leads from
//     one to the other, a Merge; or both are in a loop that cannot be cut (Note
//     [Loops that can be cut]).
// A group runs on a device that all of its kernels and constraints allow. Then,
// if a common device remains, control flow joins the group of its data: Switch
// and Exit join their inputs, Enter and NextIteration their first reader.
//
// A function that runs in frames of its own is on the device of its call: the
// call has the constraints of all nodes of the body.
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
  // A constraint that cannot be met is relaxed, with a warning: to devices of
  // type CPU, or, within a group, to the devices that the others need.
  bool soft = false;
  // Passes will still rewrite the program, so a node without any kernel is not
  // an error yet.
  bool passes_follow = false;
};

// Which part of a node's constraint applies.
enum class Counting : uint8_t { kAll, kNothing, kAnyCpu };

// The groups of one program's graph, numbered from 0 in the order of their
// first nodes. Immutable; valid while the graph is unchanged. Thread-safe.
class Colocation {
 public:
  // InvalidArgument if a constraint or a class is malformed, or matches no
  // device with a kernel of the op; if a node has no kernel; and if the nodes
  // of a group have no common device. The message names nodes, constraints, the
  // device types that have kernels, and the reasons why the nodes are together.
  // The devices and the catalog are not used later. REQUIRES: the program is
  // valid, and its functions are lowered.
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
  // The constraint that applies to the node itself: "" for none, and
  // "/device:CPU:*" if it was relaxed to that.
  std::string_view constraint_of(const Node& node) const {
    return text(node, counting_.front()[node.id()]);
  }
  // As above, for a node of the program's body with that number.
  std::string_view constraint_of(const Node& node, size_t body) const {
    return text(node, counting_[body + 1][node.id()]);
  }
  bool is_constrained(const Node& node) const {
    return !constraint_of(node).empty();
  }
  // A number shared by a node's class and all nodes that must be with it;
  // kNoClass if it has no class.
  static constexpr uint32_t kNoClass = ~uint32_t(0);
  uint32_t class_of(const Node& node) const { return class_of_[node.id()]; }
  // The relaxed constraints, with reasons.
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
