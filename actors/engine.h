// Engine: the threads under the actors: workers, the timer, kernel sharding.
#pragma once

#include <caf/actor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/session.h"
#include "devices/kernel.h"

namespace caf {
class actor_system;
}

namespace tagflow::actors {

class DeviceActor;
class Step;

// Owned by a session. Thread-safe.
class Engine {
 public:
  explicit Engine(const SessionOptions& options);
  // Stops all actors. REQUIRES: no step runs.
  ~Engine();

  caf::actor_system& system();
  int workers() const;
  HandOff hand_off() const;
  DeviceActor* device() const;
  // Shards kernels over the workers.
  devices::Parallel* parallel() const;
  // Has the session actor supervise `actor`: it is stopped with the engine,
  // and its unexpected end is reported on stderr.
  void supervise(const caf::actor& actor);
  // Calls step->expire() when its deadline passes, if it lives so long.
  void watch_deadline(const std::shared_ptr<Step>& step);

  // Whether the calling thread belongs to an engine: it must not wait.
  static bool on_worker();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
