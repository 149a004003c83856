#include "apps/shared/runs/device_memory.h"

#include "devices/device.h"

namespace tagflow::apps {

std::vector<DeviceMemory> memory_of(const actors::Session& session) {
  std::vector<DeviceMemory> devices;
  if (session.options().backend != nullptr) return devices;  // not there
  for (const auto& device : session.devices())
    devices.push_back({device->info().name.to_string(), device->memory()});
  return devices;
}

}  // namespace tagflow::apps
