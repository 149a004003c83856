// Homes of state: nodes of later signatures are placed where their resources
// are.
//
// Note [Homes of counts]
// The numbers of a random op depend on how often it has run, which the process
// counts that runs it. Other signatures, and forms of one, may place the node
// elsewhere, where its count would begin anew. So if there are several
// processes, the first one that runs it stays its home. Which device of that
// process it is does not matter; and a device or a colocation that the graph
// requests comes first.
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

// Makes each node that makes a resource request the device of its group, if
// that is known. All nodes that use the resource follow it.
// `groups` are those of the session's graph, of which the program is a part.
// Returns a warning for each node that requests a device other than the one its
// group has or can have. InvalidArgument if only the node's own resource is on
// another device. With soft placement, requests of devices that do not exist
// do not count. REQUIRES: functions are lowered.
Result<std::vector<std::string>> pin_state(
    graph::Program& program, const StateGroups& groups,
    std::span<const graph::DeviceInfo> devices,
    const devices::ResourceManager::Homes& homes, bool is_soft);

// Makes the devices of nodes that make resources the homes of these resources,
// either all of them or none. `homes` are those that pin_state() has seen.
// Aborted if homes of the same groups were added since: then the program must
// be placed again, by the current homes. FailedPrecondition if nodes are placed
// on other devices than their resources.
Status request_homes(const graph::Program& program, const StateGroups& groups,
                     std::span<const graph::DeviceInfo> devices,
                     const graph::Placement& placement,
                     const devices::ResourceManager::Homes& homes,
                     devices::ResourceManager& resources);

}  // namespace tagflow::actors
