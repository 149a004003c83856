// Engine: the threads that run the actors, shared by sessions.
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
struct Transfer;   // actors/runtime/transfer.h

// Internal. Spawns a Rendezvous, lazily, for these transfers, by number, whose
// batches are those of `store`. Both outlive it. Must be thread-safe, and must
// return an actor that is a Rendezvous.
using SpawnRendezvous = std::function<caf::actor(
    caf::actor_system& system, HandOff policy,
    const std::vector<Transfer>& transfers, BatchStore* store)>;

struct EngineOptions {
  // Worker threads; 0: one per core that this process may use.
  int workers = 0;
  // Binds each worker to a core, if there are enough cores. The workers of the
  // next engine get the same cores.
  bool pin_workers = false;
  HandOff hand_off = HandOff::kDirect;
  // For tests: makes the rendezvous of each run whose partitions exchange
  // tokens. Empty: a LocalRendezvous.
  SpawnRendezvous spawn_rendezvous;
  // Receives warnings about internal errors, such as an actor that ends by
  // itself. Empty: warnings are printed to stderr. Must be thread-safe.
  std::function<void(const std::string&)> on_warning;
};

// Note [One engine]
// The sessions of a process share its engine: one set of workers, one thread
// for time-outs (and more threads if a `done` blocks), and for each text of
// SessionOptions::devices one set of device objects, with the threads of its
// accelerators, as long as a session uses it. The engine of the process is
// created with the first session and never destroyed: its threads sleep while
// nothing runs. A separate engine is destroyed with its last session or handle;
// if this happens on one of its own threads, another thread destroys it.
//
// fork(): the child has none of the threads. Its calls of a session or an
// engine of its parent are rejected with FailedPrecondition, and their memory
// is not freed; sessions that it makes have an engine of their own. Fork only
// while no other thread is in a call of this library.
//
// Thread-safe.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // The engine of the process. ResourceExhausted if threads cannot be created.
  static Result<std::shared_ptr<Engine>> process();
  // Makes a separate engine. InvalidArgument unless workers are 0 to 1024;
  // errors as above.
  static Result<std::shared_ptr<Engine>> create(const EngineOptions& options);

  int workers() const;
  HandOff hand_off() const;
  // That of the options, or what makes a LocalRendezvous.
  const SpawnRendezvous& spawn_rendezvous() const;

  // --- For sessions ---------------------------------------------------------

  caf::actor_system& system() const;
  Scheduler& scheduler() const;
  // Distributes shards of kernels to the workers.
  devices::Parallel* parallel() const;
  // The devices that the text names; sessions with the same text share them.
  // Errors as devices::make_devices().
  Result<std::shared_ptr<DeviceSet>> devices(const std::string& spec);
  // Makes the supervisor supervise `actor`: it is stopped with the engine, and
  // its unexpected end causes a warning.
  void supervise(const caf::actor& actor) const;
  // Ends supervised actors that are not needed any more. REQUIRES: they are
  // idle, and stay idle.
  void dismiss(std::vector<caf::actor>&& actors) const;
  // Calls step.expire() when its deadline passes, and give_up() after the grace
  // period, unless it is over before.
  void watch_deadline(Step& step) const;
  // Calls step.give_up() after the grace period, unless it is over before; or
  // at once if no thread can be created for this.
  void give_grace(Step& step) const;
  // FailedPrecondition in the child of a fork().
  Status check_process() const;

  // Whether the calling thread belongs to an engine, or is lent to one: then it
  // must not wait.
  static bool on_worker();
  // Whether it is a worker, not a lent thread: then code of the user may run
  // here.
  static bool is_worker();
  // As long as this lives, the calling thread is lent to the engine: it is the
  // thread of a device, of the caller of a run, or one that calls a `done`.
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
  // Whether the calling thread is a lent thread of a device.
  static bool is_lent_device();

 private:
  explicit Engine(const EngineOptions& options);
  // Stops all actors. REQUIRES: no step runs, and the calling thread is not one
  // of the engine's.
  ~Engine();
  static void dispose(Engine* engine);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
