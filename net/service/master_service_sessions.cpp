// MasterService: the sessions of its clients.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "actors/session/backend.h"
#include "actors/session/signature_cache.h"
#include "graph/fault.h"
#include "graph/file/graphdef.h"
#include "net/service/master_service.h"

namespace tagflow::net {
namespace {

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
  TAGFLOW_RETURN_IF_ERROR(known == 0 ? held->session->extend(graph)
                                     : held->session->extend(nodes, graph));
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
