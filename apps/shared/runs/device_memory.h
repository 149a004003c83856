// What the devices of a session have allocated.
#pragma once

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "devices/memory_stats.h"

namespace tagflow::apps {

// The allocations of a device in all runs so far.
struct DeviceMemory {
  std::string device;  // its full name
  devices::MemoryStats memory;
};
// Nothing of devices of other processes.
std::vector<DeviceMemory> memory_of(const actors::Session& session);

}  // namespace tagflow::apps
