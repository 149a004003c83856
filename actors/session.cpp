#include "actors/session.h"

#include "actors/session_state.h"
#include "devices/device_registry.h"

namespace tagflow::actors {
namespace {

// A call's feeds, as names for the signature and as values for the run.
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

CancelToken::CancelToken() : state_(std::make_shared<State>()) {}

void CancelToken::cancel() {
  std::vector<std::shared_ptr<Step>> steps;
  {
    std::lock_guard lock(state_->mutex);
    state_->cancelled = true;
    for (const auto& weak : state_->steps)
      if (auto step = weak.lock()) steps.push_back(std::move(step));
    state_->steps.clear();
  }
  for (const auto& step : steps) {
    Status status = error(Code::kCancelled, "[session] the run was cancelled");
    step->fail(status);
    step->answer(std::move(status));
  }
}

bool CancelToken::cancelled() const {
  std::lock_guard lock(state_->mutex);
  return state_->cancelled;
}

class Callable::Impl {
 public:
  std::shared_ptr<SessionState> session;
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
  return impl_->session->run(*impl_->prepared, feeds, options, stats);
}

Result<std::unique_ptr<Session>> Session::create(SessionOptions options) {
  if (options.workers < 0 || options.workers > 1024)
    return invalid_argument(
        "[session] {} workers; from 0 (one per core) to "
        "1024 are possible",
        options.workers);
  if (options.window < 0)
    return invalid_argument("[session] a window of {} iterations",
                            options.window);
  if (options.max_call_depth < 1)
    return invalid_argument("[session] a call depth of {}",
                            options.max_call_depth);
  if (options.max_open_calls < 1)
    return invalid_argument("[session] {} open calls", options.max_open_calls);
  if (options.timeout.count() < 0)
    return invalid_argument("[session] a negative time-out");
  TAGFLOW_ASSIGN(auto devices, devices::make_devices(options.devices));
  return std::unique_ptr<Session>(new Session(
      std::make_shared<SessionState>(std::move(options), std::move(devices))));
}

Session::Session(std::shared_ptr<SessionState> state)
    : state_(std::move(state)) {}
Session::~Session() = default;

Status Session::extend(std::span<const graph::NodeDef> nodes) {
  return state_->extend(nodes);
}

Status Session::extend(const graph::Graph& graph) {
  return state_->extend(graph);
}

Result<std::vector<Tensor>> Session::run(
    const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
    const std::vector<std::string>& targets, const RunOptions& options,
    RunStats* stats) {
  SplitFeeds split(feeds);
  TAGFLOW_ASSIGN(auto prepared,
                 state_->prepare({std::move(split.names), fetches, targets}));
  return state_->run(*prepared, split.values, options, stats);
}

Result<Callable> Session::make_callable(
    const std::vector<std::string>& feeds,
    const std::vector<std::string>& fetches,
    const std::vector<std::string>& targets) {
  TAGFLOW_ASSIGN(auto prepared, state_->prepare({feeds, fetches, targets}));
  auto impl = std::make_unique<Callable::Impl>();
  impl->session = state_;
  impl->prepared = std::move(prepared);
  return Callable(std::move(impl));
}

void Session::run_async(const std::vector<Feed>& feeds,
                        const std::vector<std::string>& fetches,
                        const std::vector<std::string>& targets,
                        const RunOptions& options, Done done) {
  SplitFeeds split(feeds);
  auto prepared = state_->prepare({std::move(split.names), fetches, targets});
  if (!prepared.ok()) {
    done(std::move(prepared).status(), {});
    return;
  }
  state_->run_async(**prepared, split.values, options, std::move(done));
}

Result<Distribution> Session::explain(const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches,
                                      const std::vector<std::string>& targets) {
  return state_->explain({feeds, fetches, targets});
}

void Session::learn(graph::CostModel costs) { state_->learn(std::move(costs)); }

std::span<const std::unique_ptr<devices::Device>> Session::devices() const {
  return state_->devices();
}

const graph::Graph& Session::graph() const { return state_->graph(); }
const SessionOptions& Session::options() const { return state_->options(); }

}  // namespace tagflow::actors
