// Engine: the threads under the actors: workers, the timer, kernel sharding.
#pragma once

#include <caf/actor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/session.h"
#include "devices/kernel.h"

namespace caf {
class actor_system;
}

namespace tagflow::devices {
class Device;
}

namespace tagflow::actors {

class EngineActor;
class Step;
class Trace;

// Owned by a session. Thread-safe.
class Engine {
 public:
  using Warn = std::function<void(const std::string&)>;

  // The devices outlive it.
  Engine(const SessionOptions& options,
         std::span<const std::unique_ptr<devices::Device>> devices);
  // Stops all actors. REQUIRES: no step runs.
  ~Engine();

  caf::actor_system& system();
  int workers() const;
  HandOff hand_off() const;
  int max_call_depth() const;
  int max_open_calls() const;
  // Of the devices, by number.
  devices::Device& device(size_t number) const;
  EngineActor* device_actor(size_t number) const;
  // Shards kernels over the workers.
  devices::Parallel* parallel() const;
  // Has the session actor supervise `actor`: it is stopped with the engine,
  // and its unexpected end is a warning.
  void supervise(const caf::actor& actor);
  // Ends actors that it was given, now: they are not needed any more.
  // REQUIRES: they are idle, and will be.
  void dismiss(std::vector<caf::actor> actors);
  // Calls `work` once, on a worker. The engine must outlive that.
  void run_on_worker(std::function<void()> work);
  // Tells the session's owner; see SessionOptions::on_warning.
  void warn(const std::string& text) const;
  // As long as a run is traced, its trace gets what the accelerators do.
  void begin_trace(Trace& trace);
  void end_trace(Trace& trace);
  // Calls step->expire() when its deadline passes, and give_up() after the
  // grace, if it lives so long.
  void watch_deadline(const std::shared_ptr<Step>& step);

  // Whether the calling thread belongs to an engine: it must not wait.
  static bool on_worker();
  // Whether it is a worker, and none that lends itself: what is the user's may
  // run here.
  static bool is_worker();
  // As long as this lives, the calling thread belongs to the engine: that of a
  // device, which lends itself.
  class LentDevice {
   public:
    LentDevice();
    ~LentDevice();
    LentDevice(const LentDevice&) = delete;
    LentDevice& operator=(const LentDevice&) = delete;

   private:
    const bool before_;
  };

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
