// DeviceSet: the devices that sessions share, with the actors that serve them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "actors/runtime/engine.h"
#include "actors/watch/accelerator_traces.h"
#include "devices/device.h"

namespace tagflow::actors {

class EngineActor;

// Keeps its engine alive. The actors and devices end with the set, when no
// session and no shared state holds it any more. Thread-safe.
class DeviceSet {
 public:
  using Owned = std::vector<std::unique_ptr<devices::Device>>;

  // If a thread of a device drops the last reference, another thread destroys
  // the set.
  static std::shared_ptr<DeviceSet> make(std::shared_ptr<Engine> engine,
                                         Owned devices);

  const Engine& engine() const { return *engine_; }
  const std::shared_ptr<Engine>& shared_engine() const { return engine_; }
  std::span<const std::unique_ptr<devices::Device>> devices() const {
    return devices_;
  }
  std::span<const graph::DeviceInfo> infos() const { return infos_; }
  // By number.
  devices::Device& device(size_t number) const { return *devices_[number]; }
  EngineActor* actor(size_t number) const { return entries_[number].actor; }
  // Between these calls, the trace receives the activities of the accelerators
  // for the step.
  void begin_trace(uint64_t step, Trace& trace);
  void end_trace(uint64_t step, Trace& trace);

 private:
  struct Entry {
    EngineActor* actor = nullptr;
    std::unique_ptr<AcceleratorTraces> traces;  // of an accelerator
  };
  DeviceSet(std::shared_ptr<Engine> engine, Owned devices);
  ~DeviceSet();

  const std::shared_ptr<Engine> engine_;  // destroyed last
  const Owned devices_;
  const std::vector<graph::DeviceInfo> infos_;
  std::vector<caf::actor> handles_;
  std::vector<Entry> entries_;
};

}  // namespace tagflow::actors
