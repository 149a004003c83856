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

// Keeps its engine. The actors end with it; the devices when no session and no
// state of one is left that holds the set. Thread-safe.
class DeviceSet {
 public:
  using Owned = std::vector<std::unique_ptr<devices::Device>>;

  // Destroyed elsewhere where the last reference goes on a thread of a device.
  static std::shared_ptr<DeviceSet> make(std::shared_ptr<Engine> engine,
                                         Owned devices);

  const Engine& engine() const { return *engine_; }
  const std::shared_ptr<Engine>& shared_engine() const { return engine_; }
  std::span<const std::unique_ptr<devices::Device>> devices() const {
    return devices_;
  }
  // By number.
  devices::Device& device(size_t number) const { return *devices_[number]; }
  EngineActor* actor(size_t number) const { return entries_[number].actor; }
  // As long as a step is traced, its trace gets what the accelerators do for
  // it.
  void begin_trace(uint64_t step, Trace& trace);
  void end_trace(uint64_t step, Trace& trace);

 private:
  struct Entry {
    EngineActor* actor = nullptr;
    std::unique_ptr<AcceleratorTraces> traces;  // of an accelerator
  };
  DeviceSet(std::shared_ptr<Engine> engine, Owned devices);
  ~DeviceSet();

  const std::shared_ptr<Engine> engine_;  // goes last
  const Owned devices_;
  std::vector<caf::actor> handles_;
  std::vector<Entry> entries_;
};

}  // namespace tagflow::actors
