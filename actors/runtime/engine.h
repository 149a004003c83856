// Engine: the threads under the actors, shared by sessions.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/options.h"
#include "graph/status.h"

namespace caf {
class actor;
class actor_system;
}  // namespace caf

namespace tagflow::devices {
class Parallel;
}

namespace tagflow::actors {

class BatchStore;  // actors/runtime/batch.h
class DeviceSet;   // actors/runtime/device_set.h
class Scheduler;   // actors/runtime/scheduler.h
class Step;        // actors/runtime/step.h

// Spawns a Rendezvous, lazily, for transfers of these names, whose batches are
// those of `store`. Both outlive it. Must be thread-safe.
using SpawnRendezvous = std::function<caf::actor(
    caf::actor_system& system, HandOff policy,
    const std::vector<std::string>& transfers, BatchStore* store)>;

struct EngineOptions {
  // Worker threads; 0: one per core that this process may use.
  int workers = 0;
  // Bind each worker to a core, where there are enough. The next engine's
  // workers get the same cores.
  bool pin_workers = false;
  HandOff hand_off = HandOff::kDirect;
  // Makes the rendezvous of each run whose partitions exchange tokens. Empty: a
  // LocalRendezvous.
  SpawnRendezvous spawn_rendezvous;
  // Told of what should never happen, as an actor that ends by itself. Empty:
  // it is printed to stderr. Must be thread-safe.
  std::function<void(const std::string&)> on_warning;
};

// Note [One engine]
// The sessions of a process share its engine: one set of workers, one thread
// for time-outs (and more where a `done` that it has called blocks), and for
// each text of SessionOptions::devices one set of device objects, with the
// threads of its accelerators, for as long as a session uses it. The process'
// engine begins with the first session and never ends: its threads sleep while
// nothing runs. One that is made apart ends with the last session and handle
// that hold it, elsewhere if that happens on one of its own threads.
//
// fork(): the child has none of the threads. What it does with a session or an
// engine of its parent is refused with FailedPrecondition, and their memory is
// left alone; sessions that it makes have an engine of their own. Fork while no
// other thread is in the middle of a call of this library.
//
// Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // That of the process. ResourceExhausted where threads cannot be had.
  static Result<std::shared_ptr<Engine>> process();
  // One apart. InvalidArgument unless workers are 0 to 1024; errors as above.
  static Result<std::shared_ptr<Engine>> create(const EngineOptions& options);

  int workers() const;
  HandOff hand_off() const;
  // That of the options, or what makes a LocalRendezvous.
  const SpawnRendezvous& spawn_rendezvous() const;

  // --- For sessions ---------------------------------------------------------

  caf::actor_system& system() const;
  Scheduler& scheduler() const;
  // Shards kernels over the workers.
  devices::Parallel* parallel() const;
  // The devices that the text names, those of another session where there is
  // one with the same. Errors as devices::make_devices().
  Result<std::shared_ptr<DeviceSet>> devices(const std::string& spec);
  // Has the supervisor look after `actor`: it is stopped with the engine, and
  // its unexpected end is a warning.
  void supervise(const caf::actor& actor) const;
  // Ends actors that it was given, now: they are not needed any more.
  // REQUIRES: they are idle, and will be.
  void dismiss(std::vector<caf::actor>&& actors) const;
  // Calls step->expire() when its deadline passes, and give_up() after the
  // grace, if it is not over before.
  void watch_deadline(Step& step) const;
  // Calls step.give_up() after the grace, if it is not over before; at once
  // where there is no thread for this.
  void give_grace(Step& step) const;
  // FailedPrecondition in the child of a fork().
  Status check_process() const;

  // Whether the calling thread belongs to an engine, or lends itself to one: it
  // must not wait.
  static bool on_worker();
  // Whether it is a worker, and none that lends itself: what is the user's may
  // run here.
  static bool is_worker();
  // As long as this lives, the calling thread lends itself to the engine: that
  // of a device, of the caller of a run, or the one that calls a `done`.
  enum class Lender : uint8_t { kNone, kCaller, kDevice, kDone };
  class Lent {
   public:
    explicit Lent(Lender lender);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    const Lender before_;
  };
  // Whether the calling thread is that of a device, which lends itself.
  static bool is_lent_device();

 private:
  explicit Engine(const EngineOptions& options);
  // Stops all actors. REQUIRES: no step runs, and this is none of its threads.
  ~Engine();
  static void dispose(Engine* engine);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
