// StateGroups: which resources have to be on one device.
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
// slots, needs all of them on one device, and one that it has a kernel for. The
// signature that makes them need not have that op: an initialiser makes each of
// them apart. So homes are found for groups: a group is what handles and
// references of the whole graph tie together, whatever the signature at hand
// has of it. A home of one is the home of all; where there is none yet, the
// makers have a class in common, and go where all ops of the group have
// kernels. What functions do with their arguments counts, too
// (actors/plan/handle_uses.h): of ops in them the names, as types may depend on
// the call.
//
// Sessions that share a state may place parts of one group at the same time. So
// each places by the homes of one moment, and claims those that it has found by
// this only if none of the group has got another one since; else it places
// anew (claim_homes() in actors/plan/state_homes.h).

// The groups of a graph as it was when they were found. Does not keep the
// graph. Thread-safe.
class StateGroups {
 public:
  struct Group {
    std::vector<devices::ResourceKey> resources;  // each once
    std::string first_maker;                      // a node
    // The types of devices that all of its ops have kernels for.
    std::vector<std::string> types;
    bool is_anywhere = true;  // these are all types that there are

    // Keeps only the types for which lacks() is false.
    template <class F>
    void restrict(F&& lacks) {
      is_anywhere &= std::erase_if(types, lacks) == 0;
    }
  };

  // None where there is one device only: then it does not matter.
  StateGroups(const graph::Graph& graph,
              std::span<const graph::DeviceInfo> devices,
              const graph::KernelCatalog& catalog);

  // Whether nothing was added to the graph since.
  bool covers(const graph::Graph& graph) const {
    return end_id_ == graph.end_id();
  }
  // Null where no node of the graph makes it.
  const Group* of(const devices::ResourceKey& resource) const;

 private:
  size_t end_id_;  // of the graph
  std::vector<Group> groups_;
  std::map<devices::ResourceKey, size_t> group_of_;
};

}  // namespace tagflow::actors
