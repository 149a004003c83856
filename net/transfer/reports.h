// What the engine says of runs and devices, as messages have it, and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/options.h"
#include "graph/placement/device_info.h"
#include "graph/status.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// `task` is the one that the status is of; empty: nobody is named.
Outcome outcome_of(const Status& status, std::string task = {});
Status status_of(const Outcome& outcome);

// The counts of a Done. Those that are missing are 0.
std::vector<uint64_t> numbers_of(const actors::RunStats& stats);
actors::RunStats stats_of(const std::vector<uint64_t>& numbers);

Devices devices_of(std::span<const graph::DeviceInfo> infos);
// DataLoss or InvalidArgument if a name is not that of one device.
Result<std::vector<graph::DeviceInfo>> infos_of(const Devices& devices);

}  // namespace tagflow::net
