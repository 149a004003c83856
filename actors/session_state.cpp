#include "actors/session_state.h"

#include "actors/compile.h"
#include "graph/function.h"
#include "graph/validate.h"

namespace tagflow::actors {
namespace {

// "For ever", without overflowing a time point.
constexpr std::chrono::nanoseconds kLongestTimeout =
    std::chrono::hours(24 * 365 * 100);

// Unambiguous for any names: each is preceded by its length.
std::string cache_key(const Signature& signature) {
  std::string key;
  const auto add = [&](char kind, const std::vector<std::string>& names) {
    for (const std::string& name : names)
      key += fmt::format("{}{}:{}", kind, name.size(), name);
  };
  add('f', signature.feeds);
  add('o', signature.fetches);
  add('t', signature.targets);
  return key;
}

// What the name of a feed or fetch stands for.
Result<graph::Endpoint> find_endpoint(const graph::Graph& graph,
                                      const std::string& name) {
  if (name.empty())
    return invalid_argument(
        "[session] an empty name; an Output has none where its Scope has "
        "failed, whose status() says why");
  return graph.endpoint(name);
}

}  // namespace

SessionState::SessionState(SessionOptions options, OwnedDevices devices)
    : options_(std::move(options)),
      devices_(std::move(devices)),
      engine_(std::make_unique<Engine>(options_, devices_)) {}

SessionState::~SessionState() {
  std::vector<std::shared_ptr<Step>> running;
  std::unique_lock lock(steps_mutex_);
  for (auto& [id, weak] : steps_)
    if (auto step = weak.lock()) running.push_back(std::move(step));
  // A step's last reference must not go while the mutex is held.
  lock.unlock();
  for (const auto& step : running)
    step->fail(error(Code::kCancelled, "[session] the session was closed"));
  running.clear();
  lock.lock();
  steps_changed_.wait(lock, [this] { return steps_.empty(); });
  // The handles of actors must go before their system does.
  cache_.clear();
}

Status SessionState::extend(std::span<const graph::NodeDef> nodes) {
  std::unique_lock lock(graph_mutex_);
  frames_.reset();
  return graph_.extend(nodes);
}

Status SessionState::extend(const graph::Graph& graph) {
  std::unique_lock lock(graph_mutex_);
  frames_.reset();
  if (graph_.size() == 0 && graph_.library().empty()) {
    graph_ = graph.clone();
    return {};
  }
  std::vector<graph::NodeDef> defs;
  for (const graph::Node* node : graph.nodes())
    defs.push_back(graph::Graph::to_def(*node));
  // All or nothing: the functions may be refused, too.
  graph::FunctionLibrary before = graph_.library();
  TAGFLOW_RETURN_IF_ERROR(graph_.library().merge(graph.library()));
  Status status = graph_.extend(std::move(defs));
  if (!status.ok()) graph_.library() = std::move(before);
  return status;
}

Status SessionState::check_graph() {
  if (frames_) return {};
  TAGFLOW_ASSIGN(frames_, graph::validated_frames(graph_));
  warn(frames_->warnings());
  return {};
}

Result<std::shared_ptr<const Prepared>> SessionState::prepare(
    const Signature& signature) {
  const std::string key = cache_key(signature);
  {
    std::shared_lock lock(graph_mutex_);
    auto it = cache_.find(key);
    if (it != cache_.end()) return it->second;
  }
  std::unique_lock lock(graph_mutex_);
  auto it = cache_.find(key);
  if (it != cache_.end()) return it->second;
  TAGFLOW_ASSIGN(auto prepared, compile(signature));
  cache_[key] = prepared;
  return prepared;
}

Result<Request> SessionState::find_request(const Signature& signature) {
  Request request;
  for (const std::string& name : signature.feeds) {
    TAGFLOW_ASSIGN(auto endpoint, find_endpoint(graph_, name));
    request.feeds.push_back(endpoint);
  }
  for (const std::string& name : signature.fetches) {
    TAGFLOW_ASSIGN(auto endpoint, find_endpoint(graph_, name));
    request.fetches.push_back(endpoint);
  }
  for (const std::string& name : signature.targets) {
    graph::Node* node = graph_.find(name);
    if (node == nullptr) {
      // For the message, which suggests the nearest name.
      TAGFLOW_RETURN_IF_ERROR(find_endpoint(graph_, name).status());
      return error(Code::kNotFound, "[session] no node \"{}\" to run", name);
    }
    request.targets.push_back(node);
  }
  return request;
}

Result<Distribution> SessionState::distribute(const Request& request,
                                              bool explain) {
  TAGFLOW_RETURN_IF_ERROR(check_graph());
  return actors::distribute(graph_, *frames_, request, options_, devices_,
                            costs_, explain);
}

Result<Distribution> SessionState::explain(const Signature& signature) {
  std::unique_lock lock(graph_mutex_);
  TAGFLOW_ASSIGN(const Request request, find_request(signature));
  return distribute(request, true);
}

void SessionState::learn(graph::CostModel costs) {
  std::unique_lock lock(graph_mutex_);
  costs_ = std::move(costs);
  cache_.clear();
}

Result<std::shared_ptr<const Prepared>> SessionState::compile(
    const Signature& signature) {
  TAGFLOW_ASSIGN(const Request request, find_request(signature));
  TAGFLOW_ASSIGN(Distribution distribution, distribute(request, false));
  warn(distribution.placement.warnings);
  TAGFLOW_ASSIGN(auto plans,
                 actors::compile(
                     std::move(distribution.partitions),
                     {.compile_edges = options_.passes.has(graph::Pass::kEdges),
                      .window = options_.window},
                     devices_));
  for (const auto& plan : plans) warn(plan->warnings);
  auto prepared = std::make_shared<Prepared>();
  prepared->feeds = request.feeds;
  prepared->executable = std::make_shared<Executable>(
      *engine_, std::move(plans), signature.fetches);
  return std::shared_ptr<const Prepared>(std::move(prepared));
}

void SessionState::warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    if (warned_.insert(warning).second) engine_->warn(warning);
  }
}

Status SessionState::check_call(const Prepared& prepared,
                                std::span<const Tensor> feeds,
                                const RunOptions& options) {
  if (options.timeout.count() < 0)
    return invalid_argument("[session] a negative time-out");
  if (feeds.size() != prepared.feeds.size())
    return invalid_argument("[session] {} feeds given, {} expected",
                            feeds.size(), prepared.feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    const graph::Endpoint& at = prepared.feeds[i];
    const DataType wanted =
        remove_ref(at.node->output_dtypes()[size_t(at.port)]);
    if (feeds[i].dtype() != wanted)
      return invalid_argument(
          "[session] the feed of \"{}\" is {}, but the graph wants {}",
          at.to_string(), feeds[i].describe(), dtype_name(wanted));
    const PartialShape& shape = at.node->output_shape(at.port);
    if (!shape.accepts(feeds[i].shape()))
      return invalid_argument(
          "[session] the feed of \"{}\" is {}, but the graph wants shape {}",
          at.to_string(), feeds[i].describe(), shape.to_string());
  }
  return {};
}

std::shared_ptr<Step> SessionState::make_step(const Prepared& prepared,
                                              const RunOptions& options) {
  // Registered until it is destroyed, when nothing of it can run any more.
  std::shared_ptr<Step> step(
      new Step(next_step_.fetch_add(1, std::memory_order_relaxed),
               prepared.executable->num_fetches()),
      [this](Step* over) {
        const uint64_t id = over->info.step_id;
        delete over;
        std::lock_guard lock(steps_mutex_);
        steps_.erase(id);
        if (steps_.empty()) steps_changed_.notify_all();
      });
  {
    std::lock_guard lock(steps_mutex_);
    steps_[step->info.step_id] = step;
  }
  step->info.seed = options_.seed;
  step->info.forward_buffers = options_.passes.has(graph::Pass::kInplace);
  step->observer = options.observer;
  step->trace = options.trace;
  step->timeout =
      std::min(options.timeout.count() > 0 ? options.timeout : options_.timeout,
               kLongestTimeout);
  if (step->timeout.count() > 0)
    step->deadline = std::chrono::steady_clock::now() + step->timeout;
  if (options.cancel) {
    CancelToken::State& state = *options.cancel->state_;
    std::lock_guard lock(state.mutex);
    std::erase_if(state.steps, [](const auto& weak) { return weak.expired(); });
    state.steps.push_back(step);
    if (state.cancelled)
      step->fail(error(Code::kCancelled, "[session] the run was cancelled"));
  }
  return step;
}

Result<std::vector<Tensor>> SessionState::run(const Prepared& prepared,
                                              std::span<const Tensor> feeds,
                                              const RunOptions& options,
                                              RunStats* stats) {
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] run called from a worker of the engine, which "
                 "must not wait; use run_async");
  TAGFLOW_RETURN_IF_ERROR(check_call(prepared, feeds, options));
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<Step> step = make_step(prepared, options);
  prepared.executable->start(step, feeds, /*lend=*/true,
                             /*count=*/stats != nullptr);
  Step::Answer answer = step->wait(stats);
  if (stats != nullptr) {
    stats->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }
  return answer;
}

void SessionState::run_async(const Prepared& prepared,
                             std::span<const Tensor> feeds,
                             const RunOptions& options, Session::Done done) {
  if (Status bad = check_call(prepared, feeds, options); !bad.ok()) {
    done(std::move(bad), {});
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<Step> step = make_step(prepared, options);
  step->on_answer = [begin, done = std::move(done)](auto answer,
                                                    const RunStats& stats) {
    RunStats copy = stats;
    copy.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    done(std::move(answer), copy);
  };
  if (step->timeout.count() > 0) engine_->watch_deadline(step);
  prepared.executable->start(step, feeds, /*lend=*/false, /*count=*/true);
}

}  // namespace tagflow::actors
