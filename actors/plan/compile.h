// Compiles the partitions of all devices into plans.
#pragma once

#include <memory>
#include <vector>

#include "actors/plan/distribute.h"
#include "actors/plan/plan.h"
#include "devices/device.h"

namespace tagflow::actors {

using Devices = std::span<const std::unique_ptr<devices::Device>>;

// Makes the kernels of each partition, and lays it out flat. The plans own the
// partitions and the kernels. Of the options it uses the window, the
// pass "edges" and `through_wire`, which adds the errors of write_program().
// Unimplemented if a kernel is missing;
// DeadlineExceeded or Cancelled if the budget has ended;
// ResourceExhausted if a constant does not fit into its device's memory;
// FailedPrecondition for a transfer of an earlier incarnation of a device.
// Thread-safe: the partitions contain all that it needs of a graph.
Result<std::vector<std::unique_ptr<Plan>>> compile(
    std::vector<graph::Partition> partitions, const SessionOptions& options,
    Devices devices, graph::Budget* budget = nullptr);

}  // namespace tagflow::actors
