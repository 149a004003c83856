#include "actors/session_state.h"

#include "actors/compile.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// "For ever", without overflowing a time point.
constexpr std::chrono::nanoseconds kLongestTimeout =
    std::chrono::hours(24 * 365 * 100);

// Of all sessions: traces of shared devices are told apart by them.
std::atomic<uint64_t> next_step{1};

// What the name of a feed or fetch stands for.
Result<graph::Endpoint> find_endpoint(const graph::Graph& graph,
                                      const std::string& name) {
  if (name.empty())
    return invalid_argument(
        "[session] an empty name; an Output has none where its Scope has "
        "failed, whose status() says why");
  return graph.endpoint(name);
}

Status cancelled_run() {
  return error(Code::kCancelled, "[session] the run was cancelled");
}

// A step's place in a cancel token.
class TokenHook : public devices::CancelHook {
 public:
  TokenHook(std::shared_ptr<devices::CancelList> token,
            const std::shared_ptr<Step>& step)
      : token_(std::move(token)), step_(step) {}

 protected:
  void on_cancel() override {
    const std::shared_ptr<Step> step = step_.lock();
    if (step == nullptr) return;
    step->fail(cancelled_run());
    step->answer(cancelled_run());
  }

 private:
  const std::shared_ptr<devices::CancelList> token_;  // outlives the hook
  const std::weak_ptr<Step> step_;
};

}  // namespace

// --- The graph --------------------------------------------------------------

SessionState::SessionState(SessionOptions options,
                           std::shared_ptr<DeviceSet> devices)
    : options_(std::move(options)),
      devices_(std::move(devices)),
      cache_(size_t(options_.max_signatures)) {}

Status SessionState::extend(std::span<const graph::NodeDef> nodes) {
  std::lock_guard no_compiling(compile_mutex_);
  std::unique_lock lock(graph_mutex_);
  return graph_.extend(nodes);
}

Status SessionState::extend(const graph::Graph& graph) {
  std::lock_guard no_compiling(compile_mutex_);
  std::unique_lock lock(graph_mutex_);
  return graph_.extend(graph);
}

Status SessionState::check_graph() {
  TAGFLOW_RETURN_IF_ERROR(check_.run(graph_));
  const std::span<const std::string> warnings = check_.frames().warnings();
  warn_once(warnings.subspan(num_frame_warnings_));
  num_frame_warnings_ = warnings.size();
  return {};
}

// The graph is only read: a run that is prepared already does not come here,
// and an extension waits.
Result<std::shared_ptr<const Prepared>> SessionState::prepare(
    const Signature& signature) {
  const std::string key = SignatureCache::key(signature);
  if (auto prepared = cache_.find(key)) return prepared;
  std::lock_guard one_at_a_time(compile_mutex_);
  if (auto prepared = cache_.find(key)) return prepared;
  std::shared_lock lock(graph_mutex_);
  TAGFLOW_ASSIGN(auto prepared, compile(signature));
  cache_.add(key, prepared);
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
  return actors::distribute(graph_, check_.frames(), request, options_,
                            devices_->devices(), costs_, explain);
}

Result<Distribution> SessionState::explain(const Signature& signature) {
  std::lock_guard one_at_a_time(compile_mutex_);
  std::shared_lock lock(graph_mutex_);
  TAGFLOW_ASSIGN(const Request request, find_request(signature));
  return distribute(request, true);
}

void SessionState::learn(graph::CostModel costs) {
  std::lock_guard no_compiling(compile_mutex_);
  costs_ = std::move(costs);
  cache_.clear();
}

Result<std::shared_ptr<const Prepared>> SessionState::compile(
    const Signature& signature) {
  TAGFLOW_ASSIGN(const Request request, find_request(signature));
  TAGFLOW_ASSIGN(Distribution distribution, distribute(request, false));
  warn_once(distribution.placement.warnings);
  TAGFLOW_ASSIGN(auto plans,
                 actors::compile(
                     std::move(distribution.partitions),
                     {.compile_edges = options_.passes.has(graph::Pass::kEdges),
                      .window = options_.window},
                     devices_->devices()));
  for (const auto& plan : plans) warn_once(plan->warnings);
  auto prepared = std::make_shared<Prepared>();
  prepared->feeds = request.feeds;
  prepared->executable = std::make_shared<Executable>(
      devices_, CallLimits{options_.max_call_depth, options_.max_open_calls},
      std::move(plans), signature.fetches);
  return std::shared_ptr<const Prepared>(std::move(prepared));
}

void SessionState::warn(const std::string& text) const {
  if (options_.on_warning) {
    options_.on_warning(text);
  } else {
    fmt::print(stderr, "warning: {}\n", text);
  }
}

void SessionState::warn_once(std::span<const std::string> warnings) {
  for (const std::string& warning : warnings)
    if (warned_.insert(warning).second) warn(warning);
}

// --- Runs -------------------------------------------------------------------

Status SessionState::check_call(const Prepared& prepared,
                                std::span<const Tensor> feeds,
                                const RunOptions& options) const {
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

std::shared_ptr<Step> SessionState::make_step(
    const Prepared& prepared, const RunOptions& options,
    std::function<void(Step::Answer, const RunStats&)> on_answer) {
  auto step =
      std::make_shared<Step>(next_step.fetch_add(1, std::memory_order_relaxed),
                             prepared.executable->num_fetches());
  step->owner = shared_from_this();
  step->on_answer = std::move(on_answer);
  step->on_waiting = [this](Step& waiting) { give_turn(waiting); };
  step->on_over = [this](Step& over) { end_step(over); };
  step->info.seed = options_.seed;
  step->info.forward_buffers = options_.passes.has(graph::Pass::kInplace);
  step->urgent = options.priority == Priority::kHigh;
  step->observer = options.observer;
  step->trace = options.trace;
  step->timeout =
      std::min(options.timeout.count() > 0 ? options.timeout : options_.timeout,
               kLongestTimeout);
  if (step->timeout.count() > 0)
    step->deadline = std::chrono::steady_clock::now() + step->timeout;
  if (options.cancel) {
    auto hook = std::make_shared<TokenHook>(options.cancel->hooks_, step);
    step->token_hook = hook;
    if (!options.cancel->hooks_->add(std::move(hook)))
      step->fail(cancelled_run());
  }
  return step;
}

Status SessionState::submit(const std::shared_ptr<Step>& step,
                            std::shared_ptr<const Prepared> prepared,
                            std::span<const Tensor> feeds, bool sync,
                            bool count) {
  {
    std::lock_guard lock(steps_mutex_);
    if (closed_)
      return error(Code::kFailedPrecondition, "[session] it is closed");
    if (num_active_ >= options_.max_active_runs) {
      if (!sync && queued_.size() >= size_t(options_.max_queued_runs))
        return error(Code::kResourceExhausted,
                     "[session] {} runs are active and {} wait for their turn, "
                     "no more are taken",
                     num_active_, queued_.size());
      queued_.push_back(
          {step, std::move(prepared), {feeds.begin(), feeds.end()}, count});
      open_.push_back(*step);
      return {};
    }
    ++num_active_;
    step->has_turn = true;
    open_.push_back(*step);
  }
  Status status =
      prepared->executable->start(step, feeds, /*lend=*/sync, count);
  if (!status.ok()) end_step(*step);
  return status;
}

void SessionState::give_turn(Step& step) {
  {
    std::lock_guard lock(steps_mutex_);
    if (!std::exchange(step.has_turn, false)) return;
    --num_active_;
    if (queued_.empty()) return;
  }
  start_queued();
}

void SessionState::start_queued() {
  for (;;) {
    Queued next;
    {
      std::lock_guard lock(steps_mutex_);
      if (queued_.empty() || num_active_ >= options_.max_active_runs) return;
      next = std::move(queued_.front());
      queued_.pop_front();
      ++num_active_;
      next.step->has_turn = true;
    }
    Status status = next.prepared->executable->start(
        next.step, next.feeds, /*lend=*/false, next.count);
    if (status.ok()) continue;
    {
      std::lock_guard lock(steps_mutex_);
      open_.erase(StepList::s_iterator_to(*next.step));
      --num_active_;
      if (open_.empty()) steps_changed_.notify_all();
    }
    next.step->answer(std::move(status));
  }
}

// Its owner keeps this session until the step is freed.
void SessionState::end_step(Step& step) {
  if (step.token_hook != nullptr) step.token_hook->claim();
  Timer::forget(step.deadline_entry);
  bool others_wait;
  {
    std::lock_guard lock(steps_mutex_);
    open_.erase(StepList::s_iterator_to(step));
    if (std::exchange(step.has_turn, false)) --num_active_;
    others_wait = !queued_.empty();
    if (open_.empty()) steps_changed_.notify_all();
  }
  if (others_wait) start_queued();
}

Result<std::vector<Tensor>> SessionState::run(
    std::shared_ptr<const Prepared> prepared, std::span<const Tensor> feeds,
    const RunOptions& options, RunStats* stats) try {
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] run called from a worker of the engine, which "
                 "must not wait; use run_async");
  TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
  TAGFLOW_RETURN_IF_ERROR(check_call(*prepared, feeds, options));
  const auto begin = std::chrono::steady_clock::now();
  const std::shared_ptr<Step> step = make_step(*prepared, options, nullptr);
  TAGFLOW_RETURN_IF_ERROR(submit(step, std::move(prepared), feeds,
                                 /*sync=*/true, /*count=*/stats != nullptr));
  Step::Answer answer = step->wait(stats);
  if (stats != nullptr) {
    stats->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }
  return answer;
} catch (...) {
  return current_fault("session");
}

void SessionState::call(Done& done, Result<std::vector<Tensor>> answer,
                        const RunStats& stats) const {
  // It may hold the last reference to the session: gone when it has returned.
  const Done once = std::exchange(done, nullptr);
  Status thrown = guarded("session", [&] { once(std::move(answer), stats); });
  if (thrown.ok()) return;
  warn(std::move(thrown)
           .with_prefix("the `done` of an asynchronous run threw: ")
           .to_string());
}

void SessionState::run_async(std::shared_ptr<const Prepared> prepared,
                             std::span<const Tensor> feeds,
                             const RunOptions& options, Done done) {
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<Step> step;
  std::shared_ptr<Done> kept;
  Status status = guarded("session", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
    TAGFLOW_RETURN_IF_ERROR(check_call(*prepared, feeds, options));
    kept = std::make_shared<Done>(std::move(done));
    auto on_answer = [this, begin, kept](auto answer, const RunStats& stats) {
      RunStats copy = stats;
      copy.seconds = std::chrono::duration<double>(
                         std::chrono::steady_clock::now() - begin)
                         .count();
      call(*kept, std::move(answer), copy);
    };
    step = make_step(*prepared, options, std::move(on_answer));
    if (step->timeout.count() > 0) devices_->engine().watch_deadline(*step);
    return submit(step, std::move(prepared), feeds, /*sync=*/false,
                  /*count=*/true);
  });
  if (status.ok()) return;
  if (step != nullptr) {
    step->answer(std::move(status));
  } else {
    call(kept != nullptr ? *kept : done, std::move(status), {});
  }
}

// --- The end ----------------------------------------------------------------

Status SessionState::close(std::optional<std::chrono::nanoseconds> deadline) {
  const auto closed = [] {
    return error(Code::kCancelled, "[session] the session was closed");
  };
  std::deque<Queued> dropped;
  std::unique_lock lock(steps_mutex_);
  closed_ = true;
  dropped.swap(queued_);
  for (const Queued& queued : dropped)
    open_.erase(StepList::s_iterator_to(*queued.step));
  // Those that were told are at the back.
  while (!open_.empty() && !open_.front().is_told_to_end) {
    Step& first = open_.front();
    first.is_told_to_end = true;
    open_.splice(open_.end(), open_, open_.begin());
    const std::shared_ptr<Step> step = first.weak_from_this().lock();
    lock.unlock();
    if (step != nullptr) step->fail(closed());
    lock.lock();
  }
  lock.unlock();
  for (const Queued& queued : dropped) {
    queued.step->fail(closed());
    queued.step->answer(closed());
    if (queued.step->token_hook != nullptr) queued.step->token_hook->claim();
  }
  dropped.clear();
  cache_.clear();
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] closed, but a thread of the engine does not wait "
                 "for the end of what runs");
  lock.lock();
  const auto is_over = [this] { return open_.empty(); };
  if (!deadline) {
    steps_changed_.wait(lock, is_over);
  } else if (!steps_changed_.wait_for(
                 lock, std::min(*deadline, kLongestTimeout), is_over)) {
    is_left_ = true;
    return error(Code::kDeadlineExceeded,
                 "[session] closed, but {} runs have not come to an end within "
                 "{} s",
                 open_.size(),
                 std::chrono::duration<double>(*deadline).count());
  }
  return {};
}

SessionHandle::~SessionHandle() {
  if (!state->device_set().engine().check_process().ok()) {
    // What the parent's threads are in the middle of is left alone.
    new std::shared_ptr<SessionState>(std::move(state));
    return;
  }
  if (!state->is_left()) (void)state->close({}).ok();
}

bool SessionState::is_left() {
  std::lock_guard lock(steps_mutex_);
  return is_left_;
}

// --- What is going on -------------------------------------------------------

// Two looks: if each step waited at both and no wait ended between them, all
// waited at once.
std::optional<std::string> SessionState::stalled() {
  std::lock_guard no_more(steps_mutex_);
  if (open_.empty()) return std::nullopt;
  std::array<uint64_t, 2> ended{};
  for (uint64_t& look : ended)
    for (const Step& step : open_) {
      look += step.waits_ended();
      if (!step.waits_for_state()) return std::nullopt;
    }
  if (ended[0] != ended[1]) return std::nullopt;
  constexpr size_t kMostNamed = 5;
  std::string text;
  size_t named = 0;
  for (const Step& step : open_) {
    if (++named > kMostNamed) break;
    text += fmt::format("\n  run {} waits for {}", step.info.step_id,
                        step.describe_waits());
  }
  if (open_.size() > kMostNamed)
    text += fmt::format("\n  and {} more", open_.size() - kMostNamed);
  return fmt::format(
      "[session] stalled: nothing but another run could end what the {} open "
      "runs wait for:{}",
      open_.size(), text);
}

SessionCounters SessionState::counters() {
  SessionCounters counters;
  counters.signatures = int64_t(cache_.size());
  for (const auto& device : devices_->devices())
    counters.device_bytes += device->memory().in_use;
  std::lock_guard lock(steps_mutex_);
  counters.active = num_active_;
  counters.queued = int64_t(queued_.size());
  counters.waiting = int64_t(open_.size()) - counters.active - counters.queued;
  return counters;
}

}  // namespace tagflow::actors
