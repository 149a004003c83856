// Random placement, to test that placement does not change results.
#pragma once

#include <cstdint>
#include <span>

#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

// Places every group (Note [Groups]) on a random one of its possible devices;
// the same seed gives the same placement on every machine. With `soft`,
// constraints that cannot be met are relaxed. Errors and requirements are those
// of Colocation::build().
Result<Placement> scatter(const Program& program,
                          std::span<const DeviceInfo> devices,
                          const KernelCatalog& catalog, uint64_t seed,
                          bool soft = false);

}  // namespace tagflow::graph
