// The runs of a session: their start and their answers.
#include <algorithm>

#include "actors/session/inspector.h"
#include "actors/session/session_state.h"
#include "actors/shared_state.h"
#include "graph/counted.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// Shared by all sessions: traces of shared devices distinguish steps by their
// numbers.
std::atomic<uint64_t> next_step{1};

Status cancelled_run() {
  return error(Code::kCancelled, "[session] the run was cancelled");
}

// A step's place in a cancel token.
class TokenHook : public devices::CancelHook {
 public:
  TokenHook(std::shared_ptr<devices::CancelList> token,
            const std::shared_ptr<Step>& step, const Engine& engine)
      : token_(std::move(token)), step_(step), engine_(engine) {}

 protected:
  void on_cancel() override {
    const std::shared_ptr<Step> step = step_.lock();
    if (step == nullptr) return;
    step->stop(cancelled_run());
    if (!step->answered()) engine_.give_grace(*step);
  }

 private:
  const std::shared_ptr<devices::CancelList> token_;  // outlives the hook
  const std::weak_ptr<Step> step_;
  const Engine& engine_;  // the step keeps it
};

}  // namespace

// --- Runs -------------------------------------------------------------------

Status SessionState::check_call(const Prepared& prepared,
                                std::span<const Tensor> feeds,
                                const RunOptions& options) const {
  if (options.timeout.count() < 0)
    return invalid_argument(
        "[session] timeout must be at least 0, but is {} ns",
        options.timeout.count());
  if (feeds.size() != prepared.feeds.size())
    return invalid_argument(
        "[session] the call passes {}, but the signature has {}",
        counted(feeds.size(), "feed"), prepared.feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    const graph::Endpoint& at = prepared.feeds[i];
    const DataType wanted =
        remove_ref(at.node->output_dtypes()[size_t(at.port)]);
    if (feeds[i].dtype() != wanted)
      return invalid_argument(
          "[session] the feed of \"{}\" is {}, but the graph needs {}",
          at.to_string(), feeds[i].describe(), dtype_name(wanted));
    const PartialShape& shape = at.node->output_shape(at.port);
    if (!shape.accepts(feeds[i].shape()))
      return invalid_argument(
          "[session] the feed of \"{}\" is {}, but the graph needs shape {}",
          at.to_string(), feeds[i].describe(), shape.to_string());
  }
  return {};
}

std::shared_ptr<const Prepared> SessionState::pick_form(
    const Prepared& prepared, std::span<const Tensor> feeds,
    const RunOptions& options, Clock::time_point start) {
  if (prepared.forms == nullptr) return nullptr;
  // A worker must not spend its time on a compilation.
  if (Engine::on_worker()) return prepared.forms->pick(feeds, nullptr);
  return prepared.forms->pick(feeds, [&](const Signature& signature,
                                         std::vector<Shape> shapes,
                                         bool is_frozen) {
    return make_form(signature, {std::move(shapes), is_frozen}, options, start);
  });
}

std::shared_ptr<Step> SessionState::make_step(
    const Prepared& prepared, const RunOptions& options,
    Clock::time_point start,
    std::function<void(Step::Answer, const RunStats&)> on_answer) {
  auto step =
      std::make_shared<Step>(next_step.fetch_add(1, std::memory_order_relaxed),
                             prepared.executable->num_fetches());
  step->owner = shared_from_this();
  step->on_answer = std::move(on_answer);
  step->scheduler = &devices_->engine().scheduler();
  step->on_waiting = [this](Step& waiting) { deactivate(waiting); };
  step->on_resumed = [this](Step& resumed) { activate(resumed); };
  step->on_over = [this](Step& over, Step::Answer answer,
                         const RunStats& stats) {
    end_step(over, std::move(answer), stats);
  };
  SharedState& state = *options_.state;
  step->info.seed = options_.seed ? *options_.seed : state.seed();
  step->info.state = &state.resources();
  step->info.random_runs = &step->random.emplace(state.run_counts());
  step->info.forward_buffers = options_.passes.has(graph::Pass::kInplace);
  step->urgent = options.priority == Priority::kHigh;
  step->observer = options.observer;
  step->trace = options.trace;
  if (options.inspector != nullptr) step->hold = options.inspector->add_step();
  step->timeout =
      std::min(options.timeout.count() > 0 ? options.timeout : options_.timeout,
               kLongestTimeout);
  if (step->timeout.count() > 0) step->deadline = start + step->timeout;
  if (options.cancel) {
    auto hook = std::make_shared<TokenHook>(options.cancel->hooks_, step,
                                            devices_->engine());
    step->token_hook = hook;
    if (!options.cancel->hooks_->add(std::move(hook)))
      step->fail(cancelled_run());
  }
  return step;
}

Result<std::vector<Tensor>> SessionState::run(
    const std::shared_ptr<const Prepared>& prepared,
    std::span<const Tensor> feeds, const RunOptions& options, RunStats* stats,
    std::optional<Clock::time_point> start) try {
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] run was called from a `done` or a thread of an "
                 "engine, which must not wait; use run_async");
  TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
  TAGFLOW_RETURN_IF_ERROR(check_call(*prepared, feeds, options));
  const auto begin = std::chrono::steady_clock::now();
  const std::shared_ptr<Step> step =
      make_step(*prepared, options, start.value_or(begin), nullptr);
  // This thread may be inside a kernel when the time is up.
  if (step->timeout.count() > 0) devices_->engine().watch_deadline(*step);
  const std::shared_ptr<const Prepared> picked =
      pick_form(*prepared, feeds, options, start.value_or(begin));
  const auto& form = picked != nullptr ? picked : prepared;
  TAGFLOW_RETURN_IF_ERROR(submit(step, form, feeds, /*sync=*/true,
                                 /*count=*/stats != nullptr));
  Step::Answer answer = step->wait(stats, options.goes_on);
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
  const Engine::Lent lent(Engine::Lender::kDone);
  // It may hold the last reference to the session, which is dropped after the
  // call.
  const Done once = std::exchange(done, nullptr);
  Status thrown = guarded("session", [&] { once(std::move(answer), stats); });
  if (thrown.ok()) return;
  // Exceptions of on_warning are dropped.
  (void)guarded([&] {
    warn(std::move(thrown)
             .with_prefix("the `done` of an asynchronous run threw: ")
             .to_string());
  });
}

void SessionState::run_async(std::shared_ptr<const Prepared> prepared,
                             std::span<const Tensor> feeds,
                             const RunOptions& options, Done done,
                             std::optional<Clock::time_point> start) {
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<Step> step;
  std::shared_ptr<Done> kept;
  Status status = guarded("session", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
    TAGFLOW_RETURN_IF_ERROR(check_call(*prepared, feeds, options));
    kept = std::make_shared<Done>(std::move(done));
    {
      std::lock_guard lock(steps_mutex_);
      ++num_unanswered_;
    }
    auto on_answer = [this, begin, kept](auto answer, const RunStats& stats) {
      RunStats copy = stats;
      copy.seconds = std::chrono::duration<double>(
                         std::chrono::steady_clock::now() - begin)
                         .count();
      call(*kept, std::move(answer), copy);
      count_answer();
    };
    step = make_step(*prepared, options, start.value_or(begin),
                     std::move(on_answer));
    if (step->timeout.count() > 0) devices_->engine().watch_deadline(*step);
    if (auto form = pick_form(*prepared, feeds, options, start.value_or(begin)))
      prepared = std::move(form);
    return submit(step, prepared, feeds, /*sync=*/false, /*count=*/true);
  });
  if (status.ok()) return;
  if (step != nullptr) {
    step->answer(std::move(status));
  } else if (kept != nullptr) {
    call(*kept, std::move(status), {});
    count_answer();
  } else {
    call(done, std::move(status), {});
  }
}

void SessionState::count_answer() {
  std::lock_guard lock(steps_mutex_);
  if (--num_unanswered_ == 0) steps_changed_.notify_all();
}

}  // namespace tagflow::actors
