// State has a device: nodes of later signatures go where it is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "actors/plan/state_groups.h"
#include "devices/state/resource_manager.h"
#include "graph/placement/device_info.h"
#include "graph/placement/placer.h"
#include "graph/program.h"

namespace tagflow::actors {

// Has each node that makes a resource ask for the device of its group, as far
// as that is known, and with it all that has to do with the resource.
// `groups` are those of the session's graph, of which the program is a part.
// Gives a warning for each node that requests another device than its group has
// or can have; InvalidArgument where only its own resource is elsewhere.
// REQUIRES: functions are lowered.
Result<std::vector<std::string>> pin_state(
    graph::Program& program, const StateGroups& groups,
    std::span<const graph::DeviceInfo> devices,
    const devices::ResourceManager::Homes& homes);

// The devices of nodes that make resources are the homes of these from now on,
// all of them or none. `homes` are those that pin_state() has seen. Aborted
// where others of the same groups have come since: then the program is to be
// placed again, by what there is by now. FailedPrecondition where nodes are
// placed elsewhere than their resources are.
Status claim_homes(const graph::Program& program, const StateGroups& groups,
                   std::span<const graph::DeviceInfo> devices,
                   const graph::Placement& placement,
                   const devices::ResourceManager::Homes& homes,
                   devices::ResourceManager& resources);

}  // namespace tagflow::actors
