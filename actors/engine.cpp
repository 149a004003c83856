#include "actors/engine.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/thread_hook.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "actors/accelerator_actor.h"
#include "actors/accelerator_traces.h"
#include "actors/annotated_actor.h"
#include "actors/device_actor.h"
#include "actors/job.h"
#include "actors/parallel.h"
#include "actors/step.h"

namespace tagflow::actors {
namespace {

thread_local bool is_worker_thread = false;
thread_local bool is_lent_device = false;

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

// Marks the engine's threads, and binds the workers to cores: a woken thread
// that shares the waker's core would wait for it.
class WorkerHook : public caf::thread_hook {
 public:
  WorkerHook(int workers, bool pin, std::vector<int> cores)
      : workers_(workers), pin_(pin), cores_(std::move(cores)) {}
  void init(caf::actor_system&) override {}
  void thread_started() override {
    is_worker_thread = true;
    // The scheduler starts its workers first.
    const int index = started_.fetch_add(1, std::memory_order_relaxed);
    if (!pin_ || index >= workers_) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores_[size_t(index)], &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  }
  void thread_terminates() override {}

 private:
  const int workers_;
  const bool pin_;
  const std::vector<int> cores_;
  std::atomic<int> started_{0};
};

// Tells the session actor of one more actor to look after.
struct Adopt {
  caf::actor actor;
};

// And of some that it need not look after any more.
struct Dismiss {
  std::vector<caf::actor> actors;
};

// Supervises partitions, rendezvous and devices: stops them with the session,
// or when they are dismissed, and says so where one ends by itself, which it
// never should.
class SessionActor : public AnnotatedActor {
 public:
  SessionActor(caf::actor_config& config, const Engine::Warn& warn)
      : AnnotatedActor(config), warn_(warn) {}

  caf::behavior make_behavior() override {
    set_down_handler([this](caf::down_msg& down) {
      warn_(fmt::format("[engine] an actor ended unexpectedly: {}",
                        caf::to_string(down.reason)));
    });
    return {[this](Adopt& adopt) {
              monitor(adopt.actor);
              wards_.insert(std::move(adopt.actor));
            },
            [this](Dismiss& dismiss) {
              for (const caf::actor& ward : dismiss.actors)
                if (wards_.erase(ward) > 0) stop(ward);
            },
            [this](Stop&) {
              for (const caf::actor& ward : wards_) stop(ward);
              wards_.clear();
              quit();
            }};
  }

 private:
  void stop(const caf::actor& ward) {
    demonitor(ward);
    send(ward, Stop{});
  }

  const Engine::Warn warn_;
  std::set<caf::actor> wards_;
};

class Config : public caf::actor_system_config {
 public:
  Config(int workers, bool pin, const std::vector<int>& cores) {
    set("scheduler.max-threads", size_t(workers));
    set("scheduler.max-throughput", size_t(100));
    // An idle worker looks for work for a while, which spares a loop of kernels
    // on two workers the waking in each iteration; then it sleeps and is woken,
    // rather than dozing.
    set("work-stealing.aggressive-poll-attempts", size_t(2000));
    set("work-stealing.moderate-poll-attempts", size_t(0));
    set("work-stealing.relaxed-sleep-duration", caf::timespan(1'000'000));
    thread_hooks_.emplace_back(
        std::make_unique<WorkerHook>(workers, pin, cores));
  }
};

// One thread for the deadlines of all asynchronous runs, and the grace after.
class Timer {
 public:
  ~Timer() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void watch(const std::shared_ptr<Step>& step) {
    std::lock_guard lock(mutex_);
    waiting_.emplace(step->deadline, Watch{step});
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_all();
  }

 private:
  struct Watch {
    std::weak_ptr<Step> step;
    bool expired = false;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (waiting_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto first = waiting_.begin()->first;
      if (std::chrono::steady_clock::now() < first) {
        changed_.wait_until(lock, first);
        continue;
      }
      const Watch watch = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      std::shared_ptr<Step> step = watch.step.lock();
      if (!step) continue;
      if (!watch.expired)
        waiting_.emplace(first + Step::kGrace, Watch{watch.step, true});
      lock.unlock();
      watch.expired ? step->give_up() : step->expire();
      step.reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::chrono::steady_clock::time_point, Watch> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace
}  // namespace tagflow::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Adopt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Dismiss)

namespace tagflow::actors {

struct Engine::Parts {
  explicit Parts(const SessionOptions& options)
      : cores(usable_cores()),
        workers(options.workers > 0 ? options.workers : int(cores.size())),
        config(
            workers,
            options.pin_workers && workers <= int(cores.size()) && workers > 1,
            cores),
        system(config),
        parallel(system, workers),
        hand_off(options.hand_off),
        max_call_depth(options.max_call_depth),
        max_open_calls(options.max_open_calls),
        warn(options.on_warning ? options.on_warning : print_warning),
        session(system.spawn<SessionActor>(warn)) {}

  std::vector<int> cores;
  int workers;
  Config config;
  caf::actor_system system;
  WorkerParallel parallel;
  HandOff hand_off;
  int max_call_depth;
  int max_open_calls;
  Warn warn;
  caf::actor session;
  struct DeviceEntry {
    devices::Device* device = nullptr;
    EngineActor* actor = nullptr;
    std::unique_ptr<AcceleratorTraces> traces;  // of an accelerator
  };
  std::vector<DeviceEntry> devices;
  Timer timer;
};

Engine::Engine(const SessionOptions& options,
               std::span<const std::unique_ptr<devices::Device>> devices)
    : parts_(std::make_unique<Parts>(options)) {
  for (const auto& device : devices) {
    caf::actor actor;
    Parts::DeviceEntry& entry = parts_->devices.emplace_back();
    if (devices::Accelerator* accelerator = device->accelerator()) {
      actor = parts_->system.spawn<AcceleratorActor>(options.hand_off,
                                                     std::ref(*accelerator));
      entry.traces = std::make_unique<AcceleratorTraces>(*device);
    } else {
      actor =
          parts_->system.spawn<DeviceActor>(options.hand_off, parts_->workers);
    }
    entry.device = device.get();
    entry.actor = actor_pointer<EngineActor>(actor);
    supervise(actor);
  }
  leave_system();
}

Engine::~Engine() {
  caf::anon_send(parts_->session, Stop{});
  parts_->session = nullptr;
}

caf::actor_system& Engine::system() { return parts_->system; }
int Engine::workers() const { return parts_->workers; }
HandOff Engine::hand_off() const { return parts_->hand_off; }

int Engine::max_call_depth() const { return parts_->max_call_depth; }
int Engine::max_open_calls() const { return parts_->max_open_calls; }
devices::Device& Engine::device(size_t number) const {
  return *parts_->devices[number].device;
}
EngineActor* Engine::device_actor(size_t number) const {
  return parts_->devices[number].actor;
}
devices::Parallel* Engine::parallel() const { return &parts_->parallel; }

void Engine::supervise(const caf::actor& actor) {
  caf::anon_send(parts_->session, Adopt{actor});
}

void Engine::dismiss(std::vector<caf::actor> actors) {
  caf::anon_send(parts_->session, Dismiss{std::move(actors)});
}

void Engine::run_on_worker(std::function<void()> work) {
  parts_->system.scheduler().enqueue(new Job(std::move(work)));
}

void Engine::warn(const std::string& text) const { parts_->warn(text); }

void Engine::begin_trace(Trace& trace) {
  for (const Parts::DeviceEntry& entry : parts_->devices)
    if (entry.traces != nullptr) entry.traces->begin(trace);
}

void Engine::end_trace(Trace& trace) {
  for (const Parts::DeviceEntry& entry : parts_->devices)
    if (entry.traces != nullptr) entry.traces->end(trace);
}

void Engine::watch_deadline(const std::shared_ptr<Step>& step) {
  parts_->timer.watch(step);
}

bool Engine::on_worker() { return is_worker_thread || is_lent_device; }
bool Engine::is_worker() { return is_worker_thread; }

Engine::LentDevice::LentDevice()
    : before_(std::exchange(is_lent_device, true)) {}
Engine::LentDevice::~LentDevice() { is_lent_device = before_; }

}  // namespace tagflow::actors
