// SharedState: the state that outlives the runs of a session, and its devices.
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
// A snapshot of all variables must be taken at a moment between steps, when no
// step that updates them runs. So a step whose plan has updates passes the
// *border* before it starts: it holds the border's lock, shared, until it is
// answered. A snapshot holds the lock exclusively. While a snapshot waits for
// the steps that have passed, other steps wait behind it, like runs that wait
// for their turn.
//
// A step that has passed may wait for one that has not, for example for an
// element that the other puts into a queue. So a snapshot waits for a short
// time only: then it lets the steps behind it pass, and tries again later. For
// steps that offer an element to a full queue, it makes room while it waits.
//
// A step of this process that updates nothing, but moves elements of queues,
// readers and the like, passes a border of its own. Otherwise a record that a
// step has read, and not yet put into a queue, would be in no checkpoint. Such
// a step may wait for an element that nobody offers, however long. So a
// snapshot waits for these only once, and not for long, and then has what there
// is.

// Owned by the sessions that share it. Thread-safe.
class SharedState {
 public:
  // Draws a seed.
  explicit SharedState(std::shared_ptr<DeviceSet> devices);

  // The devices whose memory has the contents: sessions can share a state only
  // if they share these.
  const std::shared_ptr<DeviceSet>& device_set() const { return devices_; }
  devices::ResourceManager& resources() { return resources_; }
  devices::RunCounts& run_counts() { return run_counts_; }
  devices::StateLock& border() { return border_; }
  // That of steps which only move elements.
  devices::StateLock& element_border() { return element_border_; }
  // The seed of random ops if neither they nor their session have one.
  uint64_t seed() const { return seed_.load(std::memory_order_relaxed); }
  void set_seed(uint64_t seed) { seed_ = seed; }

 private:
  const std::shared_ptr<DeviceSet> devices_;  // destroyed last
  devices::ResourceManager resources_;
  devices::RunCounts run_counts_;
  devices::StateLock border_, element_border_;
  std::atomic<uint64_t> seed_;
};

}  // namespace tagflow::actors
