#include "actors/runtime/device_set.h"

#include <caf/actor_system.hpp>
#include <utility>

#include "actors/runtime/accelerator_actor.h"
#include "actors/runtime/device_actor.h"
#include "actors/runtime/reaper.h"
#include "devices/device_registry.h"
#include "graph/fault.h"

namespace tagflow::actors {

std::shared_ptr<DeviceSet> DeviceSet::make(std::shared_ptr<Engine> engine,
                                           Owned devices) {
  return {new DeviceSet(std::move(engine), std::move(devices)),
          [](DeviceSet* set) {
            if (Engine::is_lent_device()) {
              destroy_elsewhere([set] { delete set; });
            } else {
              delete set;
            }
          }};
}

DeviceSet::DeviceSet(std::shared_ptr<Engine> engine, Owned devices)
    : engine_(std::move(engine)),
      devices_(std::move(devices)),
      infos_(devices::infos_of(devices_)) {
  caf::actor_system& system = engine_->system();
  for (const auto& device : devices_) {
    Entry& entry = entries_.emplace_back();
    if (devices::Accelerator* accelerator = device->accelerator()) {
      handles_.push_back(spawn_actor<AcceleratorActor, caf::lazy_init>(
          system, engine_->hand_off(), std::ref(*accelerator)));
      entry.traces = std::make_unique<AcceleratorTraces>(*device);
    } else {
      handles_.push_back(spawn_actor<DeviceActor, caf::lazy_init>(
          system, engine_->hand_off(), engine_->workers()));
    }
    entry.actor = actor_pointer<EngineActor>(handles_.back());
    engine_->supervise(handles_.back());
  }
}

DeviceSet::~DeviceSet() {
  // Without memory for a message, the engine stops them when it ends.
  (void)guarded([&] { engine_->dismiss(std::move(handles_)); });
}

void DeviceSet::begin_trace(uint64_t step, Trace& trace) {
  for (const Entry& entry : entries_)
    if (entry.traces != nullptr) entry.traces->begin(step, trace);
}

void DeviceSet::end_trace(uint64_t step, Trace& trace) {
  for (const Entry& entry : entries_)
    if (entry.traces != nullptr) entry.traces->end(step, trace);
}

}  // namespace tagflow::actors
