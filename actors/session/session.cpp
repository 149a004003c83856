#include "actors/session/session.h"

#include "actors/session/session_state.h"
#include "actors/shared_state.h"
#include "devices/cancellation.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// A call's feeds, split into names for the signature and values for the run.
struct SplitFeeds {
  explicit SplitFeeds(const std::vector<Feed>& feeds) {
    for (const auto& [name, value] : feeds) {
      names.push_back(name);
      values.push_back(value);
    }
  }
  std::vector<std::string> names;
  std::vector<Tensor> values;
};

}  // namespace

class Callable::Impl {
 public:
  std::shared_ptr<SessionHandle> session;
  std::shared_ptr<const Prepared> prepared;
};

Callable::Callable() = default;
Callable::Callable(Callable&&) noexcept = default;
Callable& Callable::operator=(Callable&&) noexcept = default;
Callable::~Callable() = default;
Callable::Callable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::vector<Tensor>> Callable::operator()(std::span<const Tensor> feeds,
                                                 const RunOptions& options,
                                                 RunStats* stats) const {
  if (!impl_)
    return error(Code::kFailedPrecondition, "[session] the callable is empty");
  // The run keeps what it needs alive, since the callable may be destroyed
  // meanwhile.
  return impl_->session->state->run(impl_->prepared, feeds, options, stats);
}

bool Callable::is_closed() const {
  return !impl_ || impl_->session->state->is_closed();
}

void Callable::run_async(std::span<const Tensor> feeds,
                         const RunOptions& options, Done done) const {
  if (!impl_) {
    // Its exceptions are dropped: there is no session for a warning.
    (void)guarded([&] {
      done(error(Code::kFailedPrecondition, "[session] the callable is empty"),
           {});
    });
    return;
  }
  // A `done` may free this callable and its session before the call returns.
  const std::shared_ptr<SessionState> state = impl_->session->state;
  state->run_async(impl_->prepared, feeds, options, std::move(done));
}

namespace {

Status check(const SessionOptions& options) {
  struct Limit {
    const char* option;
    int64_t value;
    int64_t least;
  };
  for (const auto& [option, value, least] : {
           Limit{"window", options.window, 0},
           Limit{"max_call_depth", options.max_call_depth, 1},
           Limit{"max_open_calls", options.max_open_calls, 1},
           Limit{"timeout", options.timeout.count(), 0},
           Limit{"max_nodes", options.max_nodes > 0 ? 1 : 0, 1},
           Limit{"max_active_runs", options.max_active_runs, 1},
           Limit{"max_queued_runs", options.max_queued_runs, 0},
           Limit{"max_signatures", options.max_signatures, 1},
       })
    if (value < least)
      return invalid_argument("[session] {} must be at least {}, but is {}",
                              option, least, value);
  return options.policy.validate();
}

// The engine that the options request.
Result<std::shared_ptr<Engine>> choose_engine(const SessionOptions& options) {
  std::shared_ptr<Engine> named = options.engine;
  // Who shares a state shares what it is on.
  if (named == nullptr && options.state != nullptr)
    named = options.state->device_set()->shared_engine();
  if (named != nullptr) {
    TAGFLOW_RETURN_IF_ERROR(named->check_process());
    if (options.workers != 0 && options.workers != named->workers())
      return invalid_argument(
          "[session] the options request {} workers, but their engine has {}",
          options.workers, named->workers());
    if (options.engine == nullptr) return named;
    if (options.pin_workers || (options.hand_off != HandOff::kDirect &&
                                options.hand_off != options.engine->hand_off()))
      return invalid_argument(
          "[session] pin_workers and hand_off are options of the engine that "
          "the session names, which was made without them");
    return named;
  }
  const bool is_plain =
      !options.pin_workers && options.hand_off == HandOff::kDirect;
  if (is_plain) {
    TAGFLOW_ASSIGN(auto engine, Engine::process());
    if (options.workers == 0 || options.workers == engine->workers())
      return engine;
  }
  return Engine::create({.workers = options.workers,
                         .pin_workers = options.pin_workers,
                         .hand_off = options.hand_off,
                         .on_warning = options.on_warning});
}

Result<std::shared_ptr<DeviceSet>> choose_devices(
    const SessionOptions& options, const std::shared_ptr<Engine>& engine) {
  if (options.state == nullptr) return engine->devices(options.devices);
  const std::shared_ptr<DeviceSet>& shared = options.state->device_set();
  if (options.devices.empty() && shared->shared_engine() == engine)
    return shared;
  TAGFLOW_ASSIGN(auto devices, engine->devices(options.devices));
  if (devices == shared) return devices;
  return invalid_argument(
      "[session] the shared state is on other devices: a session that shares "
      "it needs the same engine, and the same text of devices as the first, "
      "or none");
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(SessionOptions options) try {
  TAGFLOW_RETURN_IF_ERROR(check(options));
  TAGFLOW_ASSIGN(auto engine, choose_engine(options));
  TAGFLOW_ASSIGN(auto devices, choose_devices(options, engine));
  // The device set keeps it alive.
  options.engine = nullptr;
  options.hand_off = engine->hand_off();
  std::shared_ptr<ServedSession> served;
  if (options.backend != nullptr) {
    TAGFLOW_ASSIGN(served, options.backend->open(options));
  }
  auto handle = std::make_shared<SessionHandle>(std::make_shared<SessionState>(
      std::move(options), std::move(devices), std::move(served)));
  return std::unique_ptr<Session>(new Session(std::move(handle)));
} catch (...) {
  return current_fault("session");
}

Session::Session(std::shared_ptr<SessionHandle> handle)
    : handle_(std::move(handle)) {}
Session::~Session() = default;

Status Session::close(std::optional<std::chrono::nanoseconds> deadline) {
  return guarded("session", [&] { return state()->close(deadline); });
}

// Each call gets a reference of its own: another thread may close and release
// the session meanwhile.
std::shared_ptr<SessionState> Session::state() const { return handle_->state; }

Status Session::extend(std::span<const graph::NodeDef> nodes) {
  return extend(nodes, graph::Graph());
}

Status Session::extend(std::span<const graph::NodeDef> nodes,
                       const graph::Graph& functions) {
  return guarded("session", [&] { return state()->extend(nodes, functions); });
}

Status Session::extend(const graph::Graph& graph) {
  return guarded("session", [&] { return state()->extend(graph); });
}

Result<std::vector<Tensor>> Session::run(
    const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
    const std::vector<std::string>& targets, const RunOptions& options,
    RunStats* stats) try {
  const std::shared_ptr<SessionState> session = state();
  const SessionState::Clock::time_point start = SessionState::Clock::now();
  SplitFeeds split(feeds);
  TAGFLOW_ASSIGN(auto prepared,
                 session->prepare({std::move(split.names), fetches, targets},
                                  options, start));
  return session->run(prepared, split.values, options, stats, start);
} catch (...) {
  return current_fault("session");
}

Result<Callable> Session::make_callable(const std::vector<std::string>& feeds,
                                        const std::vector<std::string>& fetches,
                                        const std::vector<std::string>& targets,
                                        const RunOptions& options) try {
  TAGFLOW_ASSIGN(auto prepared,
                 state()->prepare({feeds, fetches, targets}, options));
  auto impl = std::make_unique<Callable::Impl>();
  impl->session = handle_;
  impl->prepared = std::move(prepared);
  return Callable(std::move(impl));
} catch (...) {
  return current_fault("session");
}

void Session::run_async(const std::vector<Feed>& feeds,
                        const std::vector<std::string>& fetches,
                        const std::vector<std::string>& targets,
                        const RunOptions& options, Done done) {
  const std::shared_ptr<SessionState> session = state();
  std::shared_ptr<const Prepared> prepared;
  std::vector<Tensor> values;
  const SessionState::Clock::time_point start = SessionState::Clock::now();
  Status status = guarded("session", [&]() -> Status {
    SplitFeeds split(feeds);
    TAGFLOW_ASSIGN(prepared,
                   session->prepare({std::move(split.names), fetches, targets},
                                    options, start));
    values = std::move(split.values);
    return {};
  });
  if (status.ok()) {
    session->run_async(std::move(prepared), values, options, std::move(done),
                       start);
  } else {
    session->call(done, std::move(status), {});
  }
}

Result<Distribution> Session::explain(
    const std::vector<std::string>& feeds,
    const std::vector<std::string>& fetches,
    const std::vector<std::string>& targets) try {
  return state()->explain({feeds, fetches, targets});
} catch (...) {
  return current_fault("session");
}

Status Session::learn(graph::CostModel costs) {
  return state()->learn(std::move(costs));
}

Status Session::reset(const std::vector<std::string>& containers) try {
  return state()->backend().reset(containers);
} catch (...) {
  return current_fault("session");
}

std::shared_ptr<SharedState> Session::shared_state() const {
  return state()->options().state;
}

std::optional<std::string> Session::stalled() const {
  return state()->stalled();
}
SessionCounters Session::counters() const { return state()->counters(); }

std::span<const std::unique_ptr<devices::Device>> Session::devices() const {
  return handle_->state->device_set().devices();
}

std::span<const graph::DeviceInfo> Session::device_infos() const {
  return handle_->state->backend().devices();
}

const graph::Graph& Session::graph() const { return handle_->state->graph(); }
const SessionOptions& Session::options() const {
  return handle_->state->options();
}

}  // namespace tagflow::actors
