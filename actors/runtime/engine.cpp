#include "actors/runtime/engine.h"

#include <pthread.h>
#include <sched.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <map>
#include <mutex>

#include "actors/runtime/device_set.h"
#include "actors/runtime/engine_actor.h"
#include "actors/runtime/parallel.h"
#include "actors/runtime/reaper.h"
#include "actors/runtime/rendezvous.h"
#include "actors/runtime/scheduler.h"
#include "actors/runtime/step.h"
#include "actors/runtime/supervisor.h"
#include "actors/runtime/timer.h"
#include "devices/device_registry.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

constexpr int kMostWorkers = 1024;

thread_local Engine::Lender this_lender = Engine::Lender::kNone;

// Counts the forks between this process and its first ancestor.
std::atomic<uint32_t> fork_generation{0};

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

void print_warning(const std::string& text) {
  fmt::print(stderr, "warning: {}\n", text);
}

class Config : public caf::actor_system_config {
 public:
  explicit Config(int workers) {
    set("scheduler.max-threads", size_t(workers));
    set("scheduler.max-throughput", size_t(100));
    load<Scheduler>();
  }
};

// The engine of the process. Never destroyed, since its threads may run until
// the process ends.
struct ProcessEngine {
  std::mutex mutex;  // guards the below, and is held during a fork
  std::shared_ptr<Engine>* engine = nullptr;
};

ProcessEngine& process_engine() {
  static auto* const only = [] {
    auto* made = new ProcessEngine;
    pthread_atfork([] { process_engine().mutex.lock(); },
                   [] { process_engine().mutex.unlock(); },
                   [] {
                     fork_generation.fetch_add(1);
                     process_engine().engine = nullptr;
                     process_engine().mutex.unlock();
                   });
    return made;
  }();
  return *only;
}

}  // namespace

struct Engine::Parts {
  static Scheduler& started(caf::actor_system& system) {
    auto& scheduler = static_cast<Scheduler&>(system.scheduler());
    scheduler.check_started();
    return scheduler;
  }

  explicit Parts(const EngineOptions& options)
      : cores(usable_cores()),
        workers(options.workers > 0 ? options.workers : int(cores.size())),
        config(workers),
        system(config),
        scheduler(started(system)),
        parallel(scheduler, workers),
        hand_off(options.hand_off),
        spawn_rendezvous(options.spawn_rendezvous ? options.spawn_rendezvous
                                                  : spawn_local_rendezvous),
        supervisor(system.spawn<Supervisor, caf::lazy_init>(
            options.on_warning ? options.on_warning : print_warning)),
        stop(caf::make_mailbox_element(nullptr, caf::make_message_id(), {},
                                       Stop{})) {
    leave_system();
    // CAF would initialise it with the first message. If there were no memory
    // then, nothing would supervise the engine's actors.
    actor_pointer<Supervisor>(supervisor)->initialize();
    if (options.pin_workers && workers > 1 && workers <= int(cores.size()))
      scheduler.pin(cores);
  }

  const uint32_t generation = fork_generation.load();
  const std::vector<int> cores;
  const int workers;
  Config config;
  caf::actor_system system;
  Scheduler& scheduler;
  WorkerParallel parallel;
  const HandOff hand_off;
  const SpawnRendezvous spawn_rendezvous;
  caf::actor supervisor;
  caf::mailbox_element_ptr stop;  // allocated early: the end needs no memory
  Timer timer;
  std::mutex mutex;  // guards the below
  std::map<std::string, std::weak_ptr<DeviceSet>> devices;
};

Engine::Engine(const EngineOptions& options)
    : parts_(std::make_unique<Parts>(options)) {}

Engine::~Engine() {
  actor_pointer<Supervisor>(parts_->supervisor)
      ->enqueue(std::move(parts_->stop), nullptr);
  parts_->supervisor = nullptr;
}

void Engine::dispose(Engine* engine) {
  if (engine->parts_->generation != fork_generation.load()) return;
  if (on_worker()) {
    destroy_elsewhere([engine] { delete engine; });
  } else {
    delete engine;
  }
}

Result<std::shared_ptr<Engine>> Engine::create(const EngineOptions& options) {
  if (options.workers < 0 || options.workers > kMostWorkers)
    return invalid_argument(
        "[engine] the number of workers must be from 0 (one per core) to {}, "
        "but is {}",
        kMostWorkers, options.workers);
  process_engine();  // so that forks are counted
  try {
    // CAF's system cannot be destroyed before it is complete: if memory is
    // short, it must not be begun.
    constexpr size_t kReserve = size_t(1) << 20;
    std::make_unique<char[]>(kReserve).reset();
    return std::shared_ptr<Engine>(new Engine(options), &Engine::dispose);
  } catch (const std::system_error& thrown) {
    return error(Code::kResourceExhausted,
                 "[engine] cannot create a thread: {}", thrown.what());
  } catch (...) {
    return current_fault("engine");
  }
}

Result<std::shared_ptr<Engine>> Engine::process() {
  ProcessEngine& of_process = process_engine();
  std::lock_guard lock(of_process.mutex);
  if (of_process.engine == nullptr) {
    TAGFLOW_ASSIGN(auto engine, create({}));
    of_process.engine = new std::shared_ptr<Engine>(std::move(engine));
  }
  return *of_process.engine;
}

caf::actor_system& Engine::system() const { return parts_->system; }
Scheduler& Engine::scheduler() const { return parts_->scheduler; }
int Engine::workers() const { return parts_->workers; }
HandOff Engine::hand_off() const { return parts_->hand_off; }
const SpawnRendezvous& Engine::spawn_rendezvous() const {
  return parts_->spawn_rendezvous;
}
devices::Parallel* Engine::parallel() const { return &parts_->parallel; }

Result<std::shared_ptr<DeviceSet>> Engine::devices(const std::string& spec) {
  std::lock_guard lock(parts_->mutex);
  std::erase_if(parts_->devices,
                [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<DeviceSet>& known = parts_->devices[spec];
  if (auto set = known.lock()) return set;
  TAGFLOW_ASSIGN(auto made, devices::make_devices(spec));
  auto set = DeviceSet::make(shared_from_this(), std::move(made));
  known = set;
  return set;
}

void Engine::supervise(const caf::actor& actor) const {
  caf::anon_send(parts_->supervisor, Adopt{actor});
}

void Engine::dismiss(std::vector<caf::actor>&& actors) const {
  if (actors.empty()) return;
  caf::anon_send(parts_->supervisor, Dismiss{std::move(actors)});
}

void Engine::watch_deadline(Step& step) const { parts_->timer.watch(step); }

void Engine::give_grace(Step& step) const {
  if (!guarded([&] { parts_->timer.give_grace(step); }).ok()) step.give_up();
}

Status Engine::check_process() const {
  if (parts_->generation == fork_generation.load(std::memory_order_relaxed))
    return {};
  return error(Code::kFailedPrecondition,
               "[session] this process was forked from the one that made the "
               "session, and has none of its threads; make a session here");
}

bool Engine::is_worker() { return Scheduler::this_worker() != nullptr; }
bool Engine::is_lent_device() { return this_lender == Lender::kDevice; }
bool Engine::on_worker() {
  return is_worker() || this_lender != Lender::kNone || Timer::is_timer();
}

Engine::Lent::Lent(Lender lender)
    : before_(std::exchange(this_lender, lender)) {}
Engine::Lent::~Lent() { this_lender = before_; }

}  // namespace tagflow::actors
