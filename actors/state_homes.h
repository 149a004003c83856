// State has a device: nodes of later signatures go where it is.
//
// Note [Homes of groups]
// An op that takes several resources, as an optimizer takes a variable and its
// slots, needs all of them on one device, and one that it has a kernel for. The
// signature that makes them need not have that op: an initialiser makes each of
// them apart. So homes are found for groups: a group is what handles and
// references of the whole graph tie together, whatever the signature at hand
// has of it. A home of one is the home of all; where there is none yet, the
// makers have a class in common, and go where all ops of the group have
// kernels. Functions tie nothing: they are known when they are expanded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "devices/state/resource_manager.h"
#include "graph/placement/device_info.h"
#include "graph/placement/placer.h"
#include "graph/program.h"

namespace tagflow::actors {

// Has each node that makes a resource ask for the device of its group, as far
// as that is known, and with it all that has to do with the resource.
// `whole` is the session's graph, of which the program is a part. Gives a
// warning for each node that requests another device than its group can have;
// InvalidArgument where it requests another than its own resource has.
// REQUIRES: functions are lowered.
Result<std::vector<std::string>> pin_state(
    graph::Program& program, const graph::Graph& whole,
    std::span<const graph::DeviceInfo> devices,
    const graph::KernelCatalog& catalog,
    const devices::ResourceManager& resources);

// The devices of nodes that make resources are the homes of these from now on.
// Aborted where another session that shares the state has claimed another one
// since pin_state(): then the program is to be placed again.
Status claim_homes(const graph::Program& program,
                   std::span<const graph::DeviceInfo> devices,
                   const graph::Placement& placement,
                   devices::ResourceManager& resources);

}  // namespace tagflow::actors
