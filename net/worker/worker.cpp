#include "net/worker/worker.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/runtime/engine.h"
#include "actors/runtime/scheduler.h"
#include "devices/device_registry.h"
#include "graph/fault.h"
#include "graph/op_registry.h"
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
      if (service_ != nullptr)
        service_->close(error(Code::kCancelled, "the worker is closed"));
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  uint16_t port() const { return port_; }

 private:
  // One incarnation after the other.
  void serve();
  void warn(const std::string& text) const {
    if (options_.on_warning) {
      options_.on_warning(text);
    } else {
      std::fprintf(stderr, "%s\n", text.c_str());
    }
  }

  WorkerOptions options_;
  IoThreads threads_;
  std::shared_ptr<actors::DeviceSet> devices_;
  uint16_t port_ = 0;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool is_closed_ = false;
  std::unique_ptr<Service> service_;
  std::thread thread_;
};

Result<std::unique_ptr<Worker::Impl>> Worker::Impl::start(
    WorkerOptions options) {
  if (options.secret.empty())
    return invalid_argument("[net] the secret of a cluster must not be empty");
  TAGFLOW_RETURN_IF_ERROR(options.policy.validate());
  auto impl = std::make_unique<Impl>();
  impl->options_ = std::move(options);
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
  TAGFLOW_ASSIGN(impl->service_, Service::start(kept, impl->threads_,
                                                impl->devices_, kept.port));
  impl->port_ = impl->service_->port();
  TAGFLOW_RETURN_IF_ERROR(guarded("net", [&] {
    impl->thread_ = std::thread([self = impl.get()] { self->serve(); });
  }));
  return impl;
}

void Worker::Impl::serve() {
  constexpr std::chrono::milliseconds kPause{100};
  std::unique_lock lock(mutex_);
  while (!is_closed_) {
    Service* const service = service_.get();
    lock.unlock();
    const Status why = service->run();
    lock.lock();
    // The next one needs the port.
    std::unique_ptr<Service> ended = std::move(service_);
    const bool was_closed = is_closed_;
    lock.unlock();
    ended.reset();
    if (!was_closed) warn(std::string(why.message()));
    lock.lock();
    while (!is_closed_ && service_ == nullptr) {
      lock.unlock();
      auto next = Service::start(options_, threads_, devices_, port_);
      if (!next.ok()) warn(std::string(next.status().message()));
      lock.lock();
      if (next.ok()) {
        service_ = std::move(*next);
      } else {
        changed_.wait_for(lock, kPause, [this] { return is_closed_; });
      }
    }
  }
  // Made after the worker was closed.
  std::unique_ptr<Service> last = std::move(service_);
  lock.unlock();
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

}  // namespace tagflow::net
