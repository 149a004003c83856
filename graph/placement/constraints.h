// What nodes ask of where they run, found out before passes rewrite them.
//
// Note [Constraints and passes]
// A pass removes nodes, and with them what they ask for. So constraints are
// resolved first, over the program as it came: whatever cannot be
// is refused in its author's names, and no pass can hide it. Then each node's
// own fields say all that is asked of it:
//   - of a class, with what else must be where it is, all have one label, and
//     the device that they ask for together;
//   - a function's body is on one device: all of its nodes have that;
//   - what counts no longer is gone: what every device meets, what gave way,
//     and the accelerator of what stays on the host.
// So whichever nodes go, those that stay are where they would have been, and
// passes have little to heed: what is made in place of a node has its
// constraints, nodes that become one have the same, and an Identity that asks
// for another device than its source stays.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

// Resolves the program's constraints; gives a warning for those that give way,
// which they do with `soft`. Errors as those of Colocation::build(), but that a
// node that has a kernel nowhere is none yet. Does nothing where no node has a
// constraint. REQUIRES: the program is valid, and its functions are lowered.
Result<std::vector<std::string>> resolve_constraints(
    Program& program, std::span<const DeviceInfo> devices,
    const KernelCatalog& catalog, bool soft = false);

}  // namespace tagflow::graph
