// SharedState: what outlives the runs of a session, and what it lies in.
#pragma once

#include <memory>
#include <utility>

#include "actors/device_set.h"
#include "devices/state/resource_manager.h"

namespace tagflow::actors {

// Owned by the sessions that share it. Thread-safe.
class SharedState {
 public:
  explicit SharedState(std::shared_ptr<DeviceSet> devices)
      : devices_(std::move(devices)) {}

  // Whose memory the contents are in: sessions share a state only where they
  // share these.
  const std::shared_ptr<DeviceSet>& device_set() const { return devices_; }
  devices::ResourceManager& resources() { return resources_; }

 private:
  const std::shared_ptr<DeviceSet> devices_;  // goes last
  devices::ResourceManager resources_;
};

}  // namespace tagflow::actors
