#include "net/service/master_service.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "actors/runtime/engine.h"
#include "actors/session/backend.h"
#include "actors/session/signature_cache.h"
#include "graph/fault.h"
#include "graph/file/graphdef.h"
#include "net/transfer/object_tensor.h"

namespace tagflow::net {
namespace {

// Longer than workers have to end a run that was cancelled.
constexpr std::chrono::minutes kTraceTime{1};

// The backend of a session, whose runs are answered on threads of links: a Done
// is sent at once.
class SessionBackend final : public actors::Backend {
 public:
  explicit SessionBackend(std::shared_ptr<actors::Backend> backend)
      : backend_(std::move(backend)) {}

  // Whether what was made since the last call updates state; none: nothing was.
  std::optional<bool> take_updates_state() {
    const std::lock_guard lock(mutex_);
    return std::exchange(updates_state_, std::nullopt);
  }

  std::span<const graph::DeviceInfo> devices() const override {
    return backend_->devices();
  }
  const graph::KernelCatalog& kernels() const override {
    return backend_->kernels();
  }
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const actors::SessionOptions& options,
                    graph::Budget* budget) override {
    auto made = backend_->make(std::move(partitions), std::move(fetches),
                               options, budget);
    const std::lock_guard lock(mutex_);
    if (made.ok()) updates_state_ = made->executable->updates_state();
    return made;
  }
  Status reset(const std::vector<std::string>& containers) override {
    return backend_->reset(containers);
  }
  bool answers_at_once() const override { return true; }
  bool has_local_files() const override { return backend_->has_local_files(); }
  Status check_state() const override { return backend_->check_state(); }

 private:
  const std::shared_ptr<actors::Backend> backend_;
  std::mutex mutex_;  // guards the below
  std::optional<bool> updates_state_;
};

}  // namespace

// What runs of a signature need.
struct MasterService::Client::Prepared {
  actors::Callable callable;
  size_t num_feeds = 0;
};

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
    // Its end takes the lock.
    std::unique_ptr<Client> client;
    {
      const std::lock_guard lock(mutex_);
      client.reset(new Client(*this, ++last_id_));
    }
    const std::lock_guard lock(mutex_);
    if (clients_.size() >= options_.limits.clients)
      return error(Code::kResourceExhausted,
                   "[service] {} clients are here, "
                   "the limit",
                   clients_.size());
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

// --- Sessions ---------------------------------------------------------------

struct MasterService::Client::Held {
  // What the session has warned of since it was asked.
  struct Warnings {
    std::mutex mutex;  // guards the below
    std::vector<std::string> texts;

    std::vector<std::string> take() {
      const std::lock_guard lock(mutex);
      return std::exchange(texts, {});
    }
  };
  const std::shared_ptr<Warnings> warnings = std::make_shared<Warnings>();
  size_t max_nodes = 0;
  std::shared_ptr<SessionBackend> backend;  // null: this process
  // By signature: of those that the session may have compiled before.
  std::map<std::string, bool> updates_state;
  std::unique_ptr<actors::Session> session;
};

MasterService::Client::~Client() {
  leave();
  const std::lock_guard lock(service_.mutex_);
  service_.clients_.erase(id_);
}

Result<std::shared_ptr<MasterService::Client::Held>>
MasterService::Client::find(uint64_t session) {
  const std::lock_guard lock(service_.mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end())
    return error(Code::kNotFound, "[service] there is no session {}", session);
  return found->second;
}

Status MasterService::Client::claim(uint64_t number) {
  const ServiceLimits& limits = service_.options_.limits;
  if (has_left_)
    return error(Code::kCancelled, "[service] the client has left");
  if (released_.erase(number) > 0)
    return error(Code::kCancelled, "[service] {} was released", number);
  if (sessions_.contains(number) || executables_.contains(number) ||
      making_.contains(number) || failed_.contains(number))
    return error(Code::kAlreadyExists, "[service] {} is in use", number);
  if (executables_.size() + failed_.size() >= limits.signatures) {
    // It will be released, as what was made in vain.
    if (failed_.size() < limits.signatures) failed_.insert(number);
    return error(Code::kResourceExhausted,
                 "[service] the client has {} signatures, the limit",
                 limits.signatures);
  }
  return {};
}

Result<MasterService::Client::Answer> MasterService::Client::perform(
    const ServiceRequest& request) try {
  if (const auto* what = std::get_if<Request::Extend>(&request.what))
    return extend(request.session, *what);
  const uint64_t number = request.number();
  actors::CancelToken token;
  {
    const std::lock_guard lock(service_.mutex_);
    TAGFLOW_RETURN_IF_ERROR(claim(number));
    making_.emplace(number, token);
  }
  auto made = guarded("service", [&] { return make(request, token); });
  // What nobody wants is destroyed without the lock.
  const std::lock_guard lock(service_.mutex_);
  if (making_.erase(number) == 0)
    return error(Code::kCancelled, "[service] {} was released", number);
  const Status kept = guarded("service", [&] { return keep(number, made); });
  if (!kept.ok()) {
    // It will be released; without memory, as what was never asked for.
    failed_.insert(number);
    return kept;
  }
  return Answer{made->updates_state, std::move(made->warnings)};
} catch (...) {
  return current_fault("service");
}

Result<MasterService::Client::Made> MasterService::Client::make(
    const ServiceRequest& request, const actors::CancelToken& token) {
  if (const auto* what = std::get_if<Request::Open>(&request.what))
    return open(*what);
  if (std::holds_alternative<Request::Watch>(request.what))
    return Made{.updates_state = false};
  return prepare(request.session, std::get<Request::Prepare>(request.what),
                 token);
}

Status MasterService::Client::keep(uint64_t number, Result<Made>& made) {
  TAGFLOW_RETURN_IF_ERROR(made.status());
  if (made->session == nullptr) {
    executables_.emplace(number, made->executable);
  } else if (sessions_.size() >= service_.options_.limits.sessions) {
    return error(Code::kResourceExhausted,
                 "[service] the client has {} sessions, the limit",
                 sessions_.size());
  } else {
    sessions_.emplace(number, made->session);
  }
  return {};
}

Result<MasterService::Client::Made> MasterService::Client::open(
    const Request::Open& open) {
  auto held = std::make_shared<Held>();
  actors::SessionOptions options = service_.options_.session;
  options.state = service_.root_->shared_state();
  if (options.backend != nullptr)
    options.backend = held->backend =
        std::make_shared<SessionBackend>(std::move(options.backend));
  TAGFLOW_ASSIGN(options.passes, graph::PassSet::parse(open.passes));
  options.window = int(open.window);
  options.max_call_depth = int(open.max_call_depth);
  options.max_open_calls = int(open.max_open_calls);
  options.max_nodes = std::min(size_t(open.max_nodes), options.max_nodes);
  options.soft_placement = open.soft_placement;
  options.schedule_receives = open.schedule_receives;
  options.scatter = open.scatter;
  options.lossy = open.lossy;
  options.seed = open.seed;
  options.on_warning = [warnings = held->warnings](const std::string& text) {
    const std::lock_guard lock(warnings->mutex);
    warnings->texts.push_back(text);
  };
  held->max_nodes = options.max_nodes;
  TAGFLOW_ASSIGN(held->session, actors::Session::create(std::move(options)));
  return Made{.session = std::move(held)};
}

Result<MasterService::Client::Answer> MasterService::Client::extend(
    uint64_t number, const Request::Extend& extend) {
  TAGFLOW_ASSIGN(const auto held, find(number));
  TAGFLOW_ASSIGN(
      graph::GraphFile file,
      graph::parse_graphdef(extend.graph, {.max_nodes = held->max_nodes}));
  // A client asks for one thing at a time.
  const size_t known = held->session->graph().size();
  if (known > file.nodes.size())
    return invalid_argument(
        "[service] a graph of {} nodes is sent for a session with {}",
        file.nodes.size(), known);
  std::vector<graph::NodeDef> nodes;
  if (known > 0) {
    const auto from = file.nodes.begin() + ptrdiff_t(known);
    nodes.assign(std::make_move_iterator(from),
                 std::make_move_iterator(file.nodes.end()));
    file.nodes.clear();
  }
  TAGFLOW_ASSIGN(const graph::Graph graph, graph::build_graph(std::move(file)));
  TAGFLOW_RETURN_IF_ERROR(held->session->extend(graph));
  if (!nodes.empty()) TAGFLOW_RETURN_IF_ERROR(held->session->extend(nodes));
  return Answer{.warnings = held->warnings->take()};
}

Result<MasterService::Client::Made> MasterService::Client::prepare(
    uint64_t session, const Request::Prepare& prepare,
    const actors::CancelToken& token) {
  TAGFLOW_ASSIGN(const auto held, find(session));
  // What was made for a signature that failed afterwards says nothing of this.
  if (held->backend != nullptr) held->backend->take_updates_state();
  TAGFLOW_ASSIGN(
      actors::Callable callable,
      held->session->make_callable(prepare.feeds, prepare.fetches,
                                   prepare.targets, {.cancel = token}));
  bool updates_state = true;  // if it is not known
  if (held->backend != nullptr) {
    auto& known = held->updates_state;
    if (known.size() >= service_.options_.limits.signatures) known.clear();
    const std::string key = actors::SignatureCache::key(
        {prepare.feeds, prepare.fetches, prepare.targets});
    if (const auto made = held->backend->take_updates_state())
      known.insert_or_assign(key, *made);
    if (const auto found = known.find(key); found != known.end())
      updates_state = found->second;
  }
  return Made{.executable = std::make_shared<Prepared>(
                  Prepared{std::move(callable), prepare.feeds.size()}),
              .updates_state = updates_state,
              .warnings = held->warnings->take()};
}

Result<std::shared_ptr<void>> MasterService::Client::release(
    uint64_t number) try {
  std::shared_ptr<void> released;
  std::optional<actors::CancelToken> token;
  {
    const std::lock_guard lock(service_.mutex_);
    if (auto session = sessions_.extract(number); !session.empty()) {
      released = std::move(session.mapped());
    } else if (auto executable = executables_.extract(number);
               !executable.empty()) {
      released = std::move(executable.mapped());
    } else if (auto making = making_.extract(number); !making.empty()) {
      token = making.mapped();
    } else if (failed_.erase(number) == 0) {
      if (released_.size() >= service_.options_.limits.signatures)
        return error(Code::kDataLoss,
                     "[service] the client releases what it has not asked for");
      released_.insert(number);
    }
  }
  if (token) token->cancel();
  return released;
} catch (...) {
  return current_fault("service");
}

Status MasterService::Client::reset(
    const std::vector<std::string>& containers) {
  return service_.root_->reset(containers);
}

// One by one, since a list of them would take memory.
void MasterService::Client::abandon() {
  const Status cause = error(Code::kCancelled, "[service] the client has left");
  std::unique_lock lock(service_.mutex_);
  has_left_ = true;
  for (auto at = making_.begin(); at != making_.end();) {
    const uint64_t number = at->first;
    actors::CancelToken token = at->second;
    lock.unlock();
    token.cancel();
    lock.lock();
    at = making_.upper_bound(number);
  }
  for (auto at = runs_.begin(); at != runs_.end();) {
    const uint64_t number = at->first;
    lock.unlock();
    cancel(number, cause);
    lock.lock();
    at = runs_.upper_bound(number);
  }
}

void MasterService::Client::leave() {
  abandon();
  std::map<uint64_t, std::shared_ptr<Held>> sessions;
  std::map<uint64_t, std::shared_ptr<Prepared>> executables;
  std::unique_lock lock(service_.mutex_);
  sessions.swap(sessions_);
  executables.swap(executables_);
  service_.changed_.wait(lock, [this] { return unanswered_ == 0; });
}

void MasterService::look() {
  RunTurns::Starts starts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, client] : clients_) {
      int64_t waiting = 0;
      for (const auto& [number, held] : client->sessions_)
        waiting += held->session->counters().waiting;
      turns_.set_waiting(id, size_t(waiting), starts);
    }
  }
  if (!starts.empty()) begin(std::move(starts));
}

}  // namespace tagflow::net
