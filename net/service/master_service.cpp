#include "net/service/master_service.h"

#include <algorithm>
#include <utility>

#include "actors/runtime/engine.h"
#include "graph/fault.h"
#include "net/transfer/object_tensor.h"

namespace tagflow::net {
namespace {

// Longer than workers have to end a run that was cancelled.
constexpr std::chrono::minutes kTraceTime{1};

}  // namespace

// A run that is not over.
struct MasterService::Pending {
  Client* client = nullptr;
  uint64_t number = 0;                           // of the client's
  std::shared_ptr<Client::Prepared> executable;  // null: it watches
  std::vector<Tensor> feeds;
  uint64_t bytes = 0;
  actors::CancelToken token;
  std::shared_ptr<actors::Trace> trace;  // or null
  uint64_t watcher = 0;                  // the id of who watches it; 0: nobody
  bool has_begun = false;
  actors::Done done;
};

Result<std::unique_ptr<MasterService>> MasterService::create(Options options) {
  const ServiceLimits& limits = options.limits;
  for (const uint64_t limit :
       {uint64_t(limits.clients), uint64_t(limits.sessions),
        uint64_t(limits.signatures), uint64_t(limits.runs), limits.bytes,
        uint64_t(limits.active_runs), uint64_t(limits.traces)})
    if (limit == 0)
      return invalid_argument("[service] a limit of a service must not be 0");
  return guarded("service", [&]() -> Result<std::unique_ptr<MasterService>> {
    std::unique_ptr<MasterService> service(
        new MasterService(std::move(options)));
    TAGFLOW_ASSIGN(service->root_,
                   actors::Session::create(service->options_.session));
    return service;
  });
}

MasterService::~MasterService() = default;

std::span<const graph::DeviceInfo> MasterService::devices() const {
  return root_->device_infos();
}

Result<std::unique_ptr<MasterService::Client>> MasterService::admit() {
  return guarded("service", [&]() -> Result<std::unique_ptr<Client>> {
    // Its end takes the lock, so it comes first.
    std::unique_ptr<Client> client;
    const std::lock_guard lock(mutex_);
    if (clients_.size() >= options_.limits.clients)
      return error(Code::kResourceExhausted,
                   "[service] {} clients are here, "
                   "the limit",
                   clients_.size());
    client.reset(new Client(*this, ++last_id_));
    clients_.emplace(client->id_, client.get());
    return client;
  });
}

ServiceFigures MasterService::figures() {
  ServiceFigures figures;
  const std::lock_guard lock(mutex_);
  figures.clients = clients_.size();
  for (const auto& [id, client] : clients_) {
    figures.sessions += client->sessions_.size();
    figures.signatures += client->executables_.size();
    figures.feed_bytes += client->bytes_;
  }
  const RunTurns::Sizes runs = turns_.sizes();
  figures.runs_begun = runs.begun;
  figures.runs_waiting = runs.waiting;
  figures.runs_queued = runs.queued;
  return figures;
}

// --- Runs -------------------------------------------------------------------

Result<std::shared_ptr<actors::Trace>> MasterService::make_trace(
    uint64_t words) {
  if (options_.session.backend == nullptr)
    return error(Code::kUnimplemented,
                 "[service] a service records what its workers do, and has no "
                 "worker");
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  while (!kept_traces_.empty() && kept_traces_.front().until <= now)
    kept_traces_.pop_front();
  std::erase_if(traces_, [](const auto& trace) { return trace.expired(); });
  if (traces_.size() >= options_.limits.traces)
    return error(Code::kResourceExhausted,
                 "[service] {} runs are being recorded, the limit",
                 traces_.size());
  auto trace = std::make_shared<actors::Trace>(
      size_t(std::min<uint64_t>(words, actors::Trace::kMaxWords)));
  traces_.push_back(trace);
  return trace;
}

bool MasterService::has_queue() {
  const std::lock_guard lock(mutex_);
  return turns_.has_queue();
}

void MasterService::begin(RunTurns::Starts starts) {
  std::unique_lock lock(mutex_);
  to_begin_.splice(to_begin_.end(), starts);
  if (std::exchange(is_beginning_, true)) return;
  while (!to_begin_.empty()) {
    const uint64_t id = to_begin_.front();
    to_begin_.pop_front();
    lock.unlock();
    start(id);
    lock.lock();
  }
  is_beginning_ = false;
}

void MasterService::start(uint64_t id) {
  std::shared_ptr<Pending> pending;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(id);
    if (found == pending_.end()) return;  // it was cancelled
    pending = found->second;
    pending->has_begun = true;
    let_watch(*pending);
  }
  // It compiles nothing then: this thread is a link's.
  const actors::Engine::Lent lent(actors::Engine::Lender::kDone);
  const Status status = guarded("service", [&] {
    pending->executable->callable.run_async(
        pending->feeds,
        {.cancel = pending->token, .trace = pending->trace.get()},
        [this, id](Result<std::vector<Tensor>> answer,
                   const actors::RunStats& stats) {
          on_over(id, std::move(answer), stats);
        });
  });
  if (!status.ok()) on_over(id, status, {});
}

void MasterService::let_watch(Pending& pending) {
  if (pending.trace != nullptr || watchers_.empty()) return;
  pending.watcher = watchers_.front();
  watchers_.pop_front();
  pending.trace = pending_.at(pending.watcher)->trace;
}

std::shared_ptr<MasterService::Pending> MasterService::take(
    uint64_t id, RunTurns::Starts& starts) noexcept {
  const auto node = pending_.extract(id);
  if (node.empty()) return nullptr;
  Pending& pending = *node.mapped();
  pending.client->runs_.erase(pending.number);
  pending.client->bytes_ -= pending.bytes;
  if (pending.executable == nullptr) {
    std::erase(watchers_, id);
  } else {
    turns_.remove(pending.client->id_, id, starts);
  }
  return node.mapped();
}

void MasterService::on_over(uint64_t id, Result<std::vector<Tensor>> answer,
                            const actors::RunStats& stats) {
  RunTurns::Starts starts;
  std::shared_ptr<Pending> pending, watcher;
  {
    const std::lock_guard lock(mutex_);
    pending = take(id, starts);
    if (pending != nullptr && pending->watcher != 0)
      watcher = take(pending->watcher, starts);
    if (pending != nullptr && pending->trace != nullptr &&
        pending->token.cancelled())
      // Without memory it counts no longer than it is used.
      static_cast<void>(guarded([&] {
        kept_traces_.push_back(
            {std::chrono::steady_clock::now() + kTraceTime, pending->trace});
      }));
  }
  if (pending == nullptr) return;
  if (watcher == nullptr)
    return this->answer(*pending, std::move(answer), stats, std::move(starts));
  this->answer(*pending, std::move(answer), stats, {});
  this->answer(*watcher, std::vector<Tensor>(), {}, std::move(starts));
}

void MasterService::answer(Pending& pending, Result<std::vector<Tensor>> answer,
                           const actors::RunStats& stats,
                           RunTurns::Starts starts) {
  // Its exceptions are the door's, which has none.
  static_cast<void>(guarded(
      [&] { std::exchange(pending.done, {})(std::move(answer), stats); }));
  if (!starts.empty()) begin(std::move(starts));
  const std::lock_guard lock(mutex_);
  if (--pending.client->unanswered_ == 0) changed_.notify_all();
}

Status MasterService::Client::run(uint64_t executable, uint64_t number,
                                  std::vector<Tensor> feeds, Done done,
                                  std::shared_ptr<actors::Trace> trace) try {
  const ServiceLimits& limits = service_.options_.limits;
  auto pending = std::make_shared<Pending>();
  for (const Tensor& feed : feeds) pending->bytes += memory_of(feed);
  RunTurns::Starts starts;
  {
    const std::lock_guard lock(service_.mutex_);
    if (has_left_)
      return error(Code::kCancelled, "[service] the client has left");
    const auto found = executables_.find(executable);
    if (found == executables_.end())
      return error(Code::kFailedPrecondition,
                   "[service] executable {} is not prepared", executable);
    const bool watches = found->second == nullptr;
    if (watches && trace == nullptr)
      return invalid_argument(
          "[service] executable {} watches: it needs a trace", executable);
    // Before it waits: feeds without elements count no bytes.
    const size_t num_feeds = watches ? 0 : found->second->num_feeds;
    if (feeds.size() != num_feeds)
      return invalid_argument("[service] executable {} has {} feeds, not {}",
                              executable, num_feeds, feeds.size());
    if (runs_.size() >= limits.runs)
      return error(Code::kResourceExhausted,
                   "[service] the client has {} runs under way, the limit",
                   runs_.size());
    if (pending->bytes > limits.bytes - bytes_)
      return error(Code::kResourceExhausted,
                   "[service] the feeds of the client's runs have {} bytes; {} "
                   "more are above the limit of {}",
                   bytes_, pending->bytes, limits.bytes);
    const uint64_t id = service_.last_id_ + 1;
    if (!runs_.emplace(number, id).second)
      return error(Code::kAlreadyExists, "[service] run {} is under way",
                   number);
    const Status listed = guarded("service", [&] {
      service_.pending_.emplace(id, pending);
      if (watches) {
        service_.watchers_.push_back(id);
      } else {
        service_.turns_.add(id_, id, starts);
      }
    });
    if (!listed.ok()) {
      service_.pending_.erase(id);
      runs_.erase(number);
      return listed;
    }
    service_.last_id_ = id;
    pending->client = this;
    pending->number = number;
    pending->executable = found->second;
    pending->feeds = std::move(feeds);
    pending->trace = std::move(trace);
    pending->done = std::move(done);
    bytes_ += pending->bytes;
    ++unanswered_;
  }
  if (!starts.empty()) service_.begin(std::move(starts));
  return {};
} catch (...) {
  return current_fault("service");
}

void MasterService::Client::cancel(uint64_t number, const Status& cause) {
  RunTurns::Starts starts;
  std::shared_ptr<Pending> pending;
  bool has_begun = false;
  {
    const std::lock_guard lock(service_.mutex_);
    const auto found = runs_.find(number);
    if (found == runs_.end()) return;
    const uint64_t id = found->second;
    pending = service_.pending_.at(id);
    has_begun = pending->has_begun;
    if (!has_begun) service_.take(id, starts);
  }
  if (has_begun) return pending->token.cancel();
  const char* const state = pending->executable == nullptr
                                ? "it was watching"
                                : "it was still waiting for its turn";
  service_.answer(*pending,
                  error(cause.code(), "{}; {}", cause.message(), state), {},
                  std::move(starts));
}

}  // namespace tagflow::net
