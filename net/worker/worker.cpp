#include "net/worker/worker.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/runtime/engine.h"
#include "actors/runtime/scheduler.h"
#include "devices/device_registry.h"
#include "graph/fault.h"
#include "graph/op_registry.h"
#include "net/control/control.h"
#include "net/link/life_signs.h"
#include "net/transfer/identity.h"
#include "net/worker/service.h"

namespace tagflow::net {

graph::OpPolicy WorkerOptions::without_files() {
  graph::OpPolicy policy;
  policy.reads = graph::FileScope::nowhere();
  policy.writes = graph::FileScope::nowhere();
  return policy;
}

class Worker::Impl {
 public:
  static Result<std::unique_ptr<Impl>> start(WorkerOptions options);
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      end_service();
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    {
      // It is there if the thread could not be started.
      std::unique_lock lock(mutex_);
      const std::unique_ptr<Service> ended = std::move(service_);
      lock.unlock();
    }
    // The service has given it connections.
    control_.reset();
  }

  uint16_t port() const { return port_; }
  WorkerFigures figures();
  const IoThreads& threads() const { return threads_; }
  bool drain(std::chrono::milliseconds most);

 private:
  // One incarnation after the other.
  void serve();
  Result<std::unique_ptr<Service>> start_service(uint16_t port);
  // Ends the present service if the worker is closed or leaves. REQUIRES: the
  // lock is held
  void end_service();
  Load load();
  void tell_of_loss(const Status& why) const;
  void tell(const Event& event) const { options_.on_event(event); }

  WorkerOptions options_;
  const std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
  IoThreads threads_;
  std::shared_ptr<actors::DeviceSet> devices_;
  std::unique_ptr<Control> control_;
  StepCounts steps_;
  uint16_t port_ = 0;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool is_closed_ = false;
  bool is_leaving_ = false;
  bool has_ended_ = false;  // the last service has
  uint64_t incarnations_ = 0;
  std::unique_ptr<Service> service_;
  std::thread thread_;
};

Result<std::unique_ptr<Worker::Impl>> Worker::Impl::start(
    WorkerOptions options) {
  TAGFLOW_RETURN_IF_ERROR(options.policy.validate());
  if (std::error_code code;
      !options.checkpoints.empty() &&
      !std::filesystem::is_directory(options.checkpoints, code))
    return invalid_argument(
        "[worker] \"{}\", where shards of checkpoints "
        "may be, is not a folder",
        options.checkpoints);
  auto impl = std::make_unique<Impl>();
  impl->options_ = std::move(options);
  if (!impl->options_.on_event)
    impl->options_.on_event = [](const Event& event) {
      if (event.kind == Event::Kind::kWarning)
        std::fprintf(stderr, "%s\n", event.text.c_str());
    };
  // What the engine adds to the part of a graph.
  if (auto& allowed = impl->options_.policy.allowed)
    for (const std::string& op : graph::OpRegistry::global().names())
      if (op.starts_with('_')) allowed->insert(op);
  const WorkerOptions& kept = impl->options_;
  TAGFLOW_ASSIGN(const auto specs, devices::parse_device_specs(kept.devices));
  TAGFLOW_ASSIGN(
      auto made,
      devices::make_devices(
          specs, devices::DeviceRegistry::global(),
          {.job = kept.task.job, .replica = 0, .task = int(kept.task.index)}));
  TAGFLOW_ASSIGN(auto engine,
                 actors::Engine::create({.workers = kept.workers}));
  // Other workers may be on this machine.
  engine->scheduler().stop_polling();
  impl->devices_ = actors::DeviceSet::make(std::move(engine), std::move(made));
  TAGFLOW_ASSIGN(impl->threads_, IoThreads::start());
  TAGFLOW_ASSIGN(Identity identity,
                 make_identity(Role::kWorker, kept.task, kept.cluster,
                               kept.secret, kept.tls));
  TAGFLOW_ASSIGN(
      impl->control_,
      Control::start(*impl->threads_.bulk,
                     {.identity = std::move(identity),
                      .join = kept.join,
                      .load = [self = impl.get()] { return self->load(); },
                      .on_warning =
                          [self = impl.get()](const std::string& text) {
                            self->tell({.text = text});
                          },
                      .on_joined = kept.on_joined,
                      .on_refused =
                          [self = impl.get()](const Status& reason) {
                            if (self->options_.on_refused)
                              self->options_.on_refused(reason);
                          },
                      .on_asked_to_leave = kept.on_asked_to_leave}));
  TAGFLOW_ASSIGN(auto service, impl->start_service(kept.port));
  impl->port_ = service->port();
  {
    // Peers that it lets in may ask for load() already.
    const std::lock_guard lock(impl->mutex_);
    impl->service_ = std::move(service);
    impl->incarnations_ = 1;
  }
  TAGFLOW_RETURN_IF_ERROR(guarded("net", [&] {
    impl->thread_ = std::thread([self = impl.get()] { self->serve(); });
  }));
  return impl;
}

Result<std::unique_ptr<Service>> Worker::Impl::start_service(uint16_t port) {
  TAGFLOW_ASSIGN(auto service, Service::start(options_, threads_, devices_,
                                              *control_, steps_, port));
  CatalogueEntry entry{.task = options_.task,
                       .port = service->port(),
                       .incarnation = service->incarnation()};
  // Of all addresses, others know one.
  if (options_.host != "0.0.0.0" && options_.host != "::")
    entry.host = options_.host;
  for (const graph::DeviceInfo& info : devices_->infos())
    entry.devices.push_back(info.name.to_string());
  control_->announce(entry);
  return service;
}

Load Worker::Impl::load() {
  Load load;
  {
    const std::lock_guard lock(mutex_);
    // Between two incarnations there is none.
    if (service_ != nullptr) load = service_->load();
    load.is_leaving = is_leaving_;
  }
  uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  load.memory_bytes = resident * uint64_t(::sysconf(_SC_PAGESIZE));
  const auto uptime = std::chrono::steady_clock::now() - begin_;
  load.uptime_ns = uint64_t(std::chrono::nanoseconds(uptime).count());
  return load;
}

void Worker::Impl::tell_of_loss(const Status& why) const {
  Event event = Event::warning(why, kMaster);
  if (is_done(why))
    event = {.kind = Event::Kind::kNews,
             .text = "the master has left",
             .peer = kMaster};
  tell(event);
}

WorkerFigures Worker::Impl::figures() {
  WorkerFigures figures;
  {
    const std::lock_guard lock(mutex_);
    figures.is_serving = service_ != nullptr;
    if (figures.is_serving) service_->add_to(figures);
    figures.is_leaving = is_leaving_;
    figures.has_ended = has_ended_;
    figures.incarnations = incarnations_;
  }
  figures.steps = steps_.numbers();
  for (const auto& device : devices_->devices())
    figures.devices.push_back(
        {device->info().name.to_string(), device->memory()});
  return figures;
}

void Worker::Impl::end_service() {
  if (service_ == nullptr) return;
  if (is_closed_)
    service_->close(error(Code::kCancelled, "the worker is closed"));
  if (is_leaving_) service_->drain();
}

bool Worker::Impl::drain(std::chrono::milliseconds most) {
  control_->leave();
  std::unique_lock lock(mutex_);
  is_leaving_ = true;
  end_service();
  changed_.notify_all();
  return changed_.wait_for(lock, most, [this] { return has_ended_; });
}

void Worker::Impl::serve() {
  constexpr std::chrono::milliseconds kPause{100};
  const auto ends = [this] { return is_closed_ || is_leaving_; };
  std::unique_lock lock(mutex_);
  while (service_ != nullptr) {
    Service* const service = service_.get();
    lock.unlock();
    const Status why = service->run();
    lock.lock();
    // The next one needs the port.
    std::unique_ptr<Service> ended = std::move(service_);
    const bool was_ended = ends();
    lock.unlock();
    ended.reset();
    if (!was_ended) tell_of_loss(why);
    lock.lock();
    std::string warned;  // once for each reason, not for each attempt
    while (!ends() && service_ == nullptr) {
      lock.unlock();
      auto next = guarded("net", [this] { return start_service(port_); });
      if (!next.ok() && next.status().message() != warned) {
        warned = next.status().message();
        tell({.text = warned, .code = next.status().code()});
      }
      lock.lock();
      if (next.ok()) {
        service_ = std::move(*next);
        ++incarnations_;
        end_service();
      } else {
        changed_.wait_for(lock, kPause, ends);
      }
    }
  }
  has_ended_ = true;
  changed_.notify_all();
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::start(WorkerOptions options) {
  return guarded("net", [&]() -> Result<std::unique_ptr<Worker>> {
    TAGFLOW_ASSIGN(auto impl, Impl::start(std::move(options)));
    return std::unique_ptr<Worker>(new Worker(std::move(impl)));
  });
}

uint16_t Worker::port() const { return impl_->port(); }

WorkerFigures Worker::figures() const { return impl_->figures(); }

const IoThreads& Worker::threads() const { return impl_->threads(); }

bool Worker::drain(std::chrono::milliseconds most) {
  return impl_->drain(most);
}

}  // namespace tagflow::net
