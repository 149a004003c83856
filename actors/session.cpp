#include "actors/session.h"

#include "actors/session_state.h"

namespace tagflow::actors {

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
  if (options.timeout.count() < 0)
    return invalid_argument("[session] a negative time-out");
  return std::unique_ptr<Session>(
      new Session(std::make_shared<SessionState>(options)));
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
  Signature signature{{}, fetches, targets};
  std::vector<Tensor> values;
  for (const Feed& feed : feeds) {
    signature.feeds.push_back(feed.first);
    values.push_back(feed.second);
  }
  TAGFLOW_ASSIGN(auto prepared, state_->prepare(signature));
  return state_->run(*prepared, values, options, stats);
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
  Signature signature{{}, fetches, targets};
  std::vector<Tensor> values;
  for (const Feed& feed : feeds) {
    signature.feeds.push_back(feed.first);
    values.push_back(feed.second);
  }
  auto prepared = state_->prepare(signature);
  if (!prepared.ok()) {
    done(std::move(prepared).status(), {});
    return;
  }
  state_->run_async(**prepared, values, options, std::move(done));
}

const graph::Graph& Session::graph() const { return state_->graph(); }
const SessionOptions& Session::options() const { return state_->options(); }

}  // namespace tagflow::actors
