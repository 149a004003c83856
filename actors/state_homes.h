// State has a device: nodes of later signatures go where it is.
#pragma once

#include <span>

#include "devices/state/resource_manager.h"
#include "graph/placement/device_info.h"
#include "graph/placement/placer.h"
#include "graph/program.h"

namespace tagflow::actors {

// Has each node that makes a resource whose home is known ask for that device,
// and with it all that has to do with the resource. InvalidArgument where the
// node asks for another one. REQUIRES: functions are lowered.
Status pin_state(graph::Program& program,
                 std::span<const graph::DeviceInfo> devices,
                 const devices::ResourceManager& resources);

// The devices of nodes that make resources are the homes of these from now on.
// Aborted where another session that shares the state has claimed another one
// since pin_state(): then the program is to be placed again.
Status claim_homes(const graph::Program& program,
                   std::span<const graph::DeviceInfo> devices,
                   const graph::Placement& placement,
                   devices::ResourceManager& resources);

}  // namespace tagflow::actors
