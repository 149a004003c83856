// Placement at random, to find out that placement makes no difference.
#pragma once

#include <cstdint>
#include <span>

#include "graph/placement/device_info.h"
#include "graph/program.h"

namespace tagflow::graph {

// Every group (Note [Groups]) on one of the devices where it can be, drawn with
// the seed: the same on every machine. With `soft`, constraints that cannot be
// met give way. Errors as Colocation::build() gives them; the same
// requirements.
Result<Placement> scatter(const Program& program,
                          std::span<const DeviceInfo> devices,
                          const KernelCatalog& catalog, uint64_t seed,
                          bool soft = false);

}  // namespace tagflow::graph
