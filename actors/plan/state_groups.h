// StateGroups: which resources must be on the same device.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "devices/state/resource_manager.h"
#include "graph/graph.h"
#include "graph/placement/device_info.h"
#include "graph/placement/placer.h"

namespace tagflow::actors {

// Note [Homes of groups]
// An op that takes several resources, as an optimizer takes a variable and its
// slots, needs all of them on one device that has a kernel of the op. The
// signature that makes the resources may not contain that op: an initialiser
// makes each of them separately. So homes are assigned to groups. The handles
// and references of the whole graph define the groups, not those of one
// signature. A home of one resource is the home of its group. While there is
// none, the makers are placed together, on a device that has kernels of all ops
// of the group. Ops inside functions count, too (actors/plan/handle_uses.h):
// they are known by their names only, as their types may depend on the call.
//
// Sessions that share a state may place parts of one group at the same time. So
// each session places by the homes of one moment. It then claims the homes that
// it has chosen, but only if no resource of the group has got another home
// since; otherwise it repeats the placement (request_homes() in
// actors/plan/state_homes.h).

// The groups of a graph at the time of construction. Does not keep the graph.
// Thread-safe.
class StateGroups {
 public:
  struct Group {
    std::vector<devices::ResourceKey> resources;  // each once
    std::string first_maker;                      // a node
    // The types of devices that all of its ops have kernels for.
    std::vector<std::string> types;
    bool is_anywhere = true;  // these are all existing types

    // Keeps only the types for which lacks() is false.
    template <class F>
    void restrict(F&& lacks) {
      is_anywhere &= std::erase_if(types, lacks) == 0;
    }
  };

  // Makes no groups if there is only one device.
  StateGroups(const graph::Graph& graph,
              std::span<const graph::DeviceInfo> devices,
              const graph::KernelCatalog& catalog);

  // Whether no node was added to the graph since.
  bool covers(const graph::Graph& graph) const {
    return end_id_ == graph.end_id();
  }
  // Null if no node of the graph makes the resource.
  const Group* of(const devices::ResourceKey& resource) const;

 private:
  size_t end_id_;  // of the graph
  std::vector<Group> groups_;
  std::map<devices::ResourceKey, size_t> group_of_;
};

}  // namespace tagflow::actors
