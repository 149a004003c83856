// SharedState: what outlives the runs of a session, and what it lies in.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "devices/state/resource_manager.h"
#include "devices/state/run_counts.h"
#include "devices/state/state_lock.h"

namespace tagflow::actors {

class DeviceSet;  // actors/runtime/device_set.h

// Note [Borders]
// A snapshot of all variables has to be of one moment between steps: none that
// updates them is halfway through. So a step whose plan has updates passes the
// *border* before it starts, and has passed it until it is answered: it has the
// border's lock, shared. A snapshot has it alone. While one waits for the steps
// that have passed, others wait behind it, as runs that wait for their turn do.
//
// A step that has passed may itself wait for one that has not, as for what that
// puts into a queue. So a snapshot waits for a short time only: then it lets
// those behind it pass, and tries again later.

// Owned by the sessions that share it. Thread-safe.
class SharedState {
 public:
  // Draws a seed.
  explicit SharedState(std::shared_ptr<DeviceSet> devices);

  // Whose memory the contents are in: sessions share a state only where they
  // share these.
  const std::shared_ptr<DeviceSet>& device_set() const { return devices_; }
  devices::ResourceManager& resources() { return resources_; }
  devices::RunCounts& run_counts() { return run_counts_; }
  devices::StateLock& border() { return border_; }
  // Of random ops, where neither they nor their session have one.
  uint64_t seed() const { return seed_.load(std::memory_order_relaxed); }
  void set_seed(uint64_t seed) { seed_ = seed; }

 private:
  const std::shared_ptr<DeviceSet> devices_;  // goes last
  devices::ResourceManager resources_;
  devices::RunCounts run_counts_;
  devices::StateLock border_;
  std::atomic<uint64_t> seed_;
};

}  // namespace tagflow::actors
