// From what each device is to do to the plans that do it.
#pragma once

#include <memory>
#include <vector>

#include "actors/plan/distribute.h"
#include "actors/plan/plan.h"

namespace tagflow::actors {

// Makes the kernels of each partition, and lays it out flat. The plans own the
// partitions and the kernels. Unimplemented where there is no kernel;
// ResourceExhausted where a constant does not fit into its device's memory;
// FailedPrecondition for a transfer from an earlier life of a device.
// Thread-safe: it takes all it needs of a graph with the partitions.
Result<std::vector<std::unique_ptr<Plan>>> compile(
    std::vector<graph::Partition> partitions, const PlanOptions& options,
    Devices devices);

}  // namespace tagflow::actors
