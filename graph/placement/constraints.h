// Placement constraints of nodes, resolved before passes rewrite the program.
//
// Note [Constraints and passes]
// A pass removes nodes, and their constraints with them. So constraints are
// resolved first, on the original program: an impossible one is rejected with
// the user's node names, even if a pass would remove the node. Then the fields
// of each node contain all of its constraints:
//   - all nodes of a class, and the nodes that must be with it, have one label
//     and their common device;
//   - all nodes of a function's body have the single device of the function;
//   - constraints without effect are removed: those that every device meets,
//     those that were relaxed, and accelerators for nodes that stay on the
//     host.
// So removing some nodes does not change the placement of the others, and
// passes have simple rules: a replacement of a node has its constraints, merged
// nodes have equal constraints, and an Identity with another device than its
// source stays.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

// Resolves the program's constraints and returns a warning for each one that is
// relaxed, which requires `soft`. Errors are those of Colocation::build(), but
// a node without any kernel is not an error yet. No effect if no node has a
// constraint. REQUIRES: the program is valid, and its functions are lowered.
Result<std::vector<std::string>> resolve_constraints(
    Program& program, std::span<const DeviceInfo> devices,
    const KernelCatalog& catalog, bool soft = false);

}  // namespace tagflow::graph
