// The runs of a session: their turns, their answers, their end.
#include <algorithm>
#include <array>

#include "actors/session_state.h"
#include "actors/shared_state.h"
#include "graph/counted.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// "For ever", without overflowing a time point.
constexpr std::chrono::nanoseconds kLongestTimeout =
    std::chrono::hours(24 * 365 * 100);

// Of all sessions: traces of shared devices are told apart by them.
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

class SessionState::Queued : public devices::CancelHook {
 public:
  Queued(SessionState& session, std::shared_ptr<Step> step,
         std::shared_ptr<const Prepared> prepared,
         std::span<const Tensor> feeds, bool sync, bool count)
      : step(std::move(step)),
        prepared(std::move(prepared)),
        feeds(feeds.begin(), feeds.end()),
        sync(sync),
        count(count),
        session_(session) {}

  const std::shared_ptr<Step> step;  // keeps the session
  const std::shared_ptr<const Prepared> prepared;
  const std::vector<Tensor> feeds;
  const bool sync;  // somebody waits for the answer
  const bool count;
  Queue::iterator place;  // guarded by the session's steps_mutex_

 protected:
  void on_cancel() override { session_.drop_queued(*this); }

 private:
  SessionState& session_;
};

// Is granted the border, or is cancelled before.
class SessionState::AtBorder : public devices::StateLock::Waiter {
 public:
  AtBorder(SessionState& session, std::shared_ptr<Step> step,
           std::shared_ptr<const Prepared> prepared,
           std::span<const Tensor> feeds, bool sync, bool count)
      : step(std::move(step)),
        prepared(std::move(prepared)),
        feeds(feeds.begin(), feeds.end()),
        sync(sync),
        count(count),
        session_(session) {}

  void on_granted() override {
    // The last that holds the session may be this.
    const std::shared_ptr<Step> alive = step;
    alive->has_passed = true;
    session_.leave_border(*alive);
    Status status = guarded("session", [&] {
      return session_.submit_passed(alive, prepared, feeds, sync,
                                    /*lend=*/false, count);
    });
    if (status.ok()) return;
    session_.return_border(*alive);
    alive->answer_on_worker(std::move(status), {});
  }

  const std::shared_ptr<Step> step;  // keeps the session
  const std::shared_ptr<const Prepared> prepared;
  const std::vector<Tensor> feeds;
  const bool sync;  // somebody waits for the answer
  const bool count;

 protected:
  void on_cancel() override {
    const std::shared_ptr<Step> alive = step;
    session_.leave_border(*alive);
    Timer::forget(alive->deadline_entry);
    const Status reason = alive->error();
    alive->answer(error(reason.code(),
                        "{}; it was still waiting for a "
                        "snapshot of the variables to be taken",
                        reason.message()));
  }

 private:
  SessionState& session_;
};

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

std::shared_ptr<const Prepared> SessionState::frozen_form(
    const Prepared& prepared) {
  if (prepared.freezing == nullptr) return nullptr;
  // A worker has other things to do than to compile.
  if (Engine::on_worker()) return prepared.freezing->pick(nullptr);
  return prepared.freezing->pick([this](const Signature& signature) {
    Result<Frozen> frozen = Frozen();
    Status thrown = guarded("session", [&] { frozen = freeze(signature); });
    return thrown.ok() ? std::move(frozen) : Result<Frozen>(std::move(thrown));
  });
}

std::shared_ptr<Step> SessionState::make_step(
    const Prepared& prepared, const RunOptions& options,
    std::function<void(Step::Answer, const RunStats&)> on_answer) {
  auto step =
      std::make_shared<Step>(next_step.fetch_add(1, std::memory_order_relaxed),
                             prepared.executable->num_fetches());
  step->owner = shared_from_this();
  step->on_answer = std::move(on_answer);
  step->scheduler = &devices_->engine().scheduler();
  step->on_waiting = [this](Step& waiting) { give_turn(waiting); };
  step->on_resumed = [this](Step& resumed) { take_turn(resumed); };
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
  step->timeout =
      std::min(options.timeout.count() > 0 ? options.timeout : options_.timeout,
               kLongestTimeout);
  if (step->timeout.count() > 0)
    step->deadline = std::chrono::steady_clock::now() + step->timeout;
  if (options.cancel) {
    auto hook = std::make_shared<TokenHook>(options.cancel->hooks_, step,
                                            devices_->engine());
    step->token_hook = hook;
    if (!options.cancel->hooks_->add(std::move(hook)))
      step->fail(cancelled_run());
  }
  return step;
}

Status SessionState::submit(const std::shared_ptr<Step>& step,
                            const std::shared_ptr<const Prepared>& prepared,
                            std::span<const Tensor> feeds, bool sync,
                            bool count) {
  if (prepared->updates_state) {
    step->has_passed =
        options_.state->border().try_lock(devices::StateLock::Mode::kShared);
    if (!step->has_passed)
      return wait_at_border(std::make_shared<AtBorder>(*this, step, prepared,
                                                       feeds, sync, count));
  }
  Status status = submit_passed(step, prepared, feeds, sync, sync, count);
  if (!status.ok()) return_border(*step);
  return status;
}

Status SessionState::wait_at_border(std::shared_ptr<AtBorder> waiting) {
  Step& step = *waiting->step;
  {
    std::lock_guard lock(steps_mutex_);
    if (closed_) return closed_session();
    open_.push_back(step);
  }
  if (!step.info.cancels->add(waiting)) {
    leave_border(step);
    return step.error();
  }
  options_.state->border().wait(devices::StateLock::Mode::kShared,
                                std::move(waiting));
  return {};
}

void SessionState::leave_border(Step& step) {
  std::lock_guard lock(steps_mutex_);
  open_.erase(StepList::s_iterator_to(step));
  if (open_.empty()) steps_changed_.notify_all();
}

void SessionState::return_border(Step& step) {
  if (std::exchange(step.has_passed, false))
    options_.state->border().unlock(devices::StateLock::Mode::kShared);
}

Status SessionState::submit_passed(
    const std::shared_ptr<Step>& step,
    const std::shared_ptr<const Prepared>& prepared,
    std::span<const Tensor> feeds, bool sync, bool lend, bool count) {
  {
    std::lock_guard lock(steps_mutex_);
    if (closed_) return closed_session();
    if (num_active_ >= options_.max_active_runs) {
      if (!sync && num_queued_async_ >= options_.max_queued_runs)
        return error(Code::kResourceExhausted,
                     "[session] the session rejects this run: it has {} and "
                     "{}, the most that it may have (max_queued_runs)",
                     counted(size_t(num_active_), "active run"),
                     counted(size_t(num_queued_async_), "queued run"));
      return enqueue(
          std::make_shared<Queued>(*this, step, prepared, feeds, sync, count));
    }
    ++num_active_;
    step->has_turn = true;
    open_.push_back(*step);
  }
  Status status = prepared->executable->start(step, feeds, lend, count);
  if (!status.ok()) start_queued(leave(*step));
  return status;
}

Status SessionState::enqueue(std::shared_ptr<Queued> queued) {
  Step& step = *queued->step;
  queued->place = queued_.insert(queued_.end(), queued);
  if (!queued->sync) ++num_queued_async_;
  // Its on_cancel() waits for the mutex.
  if (!step.info.cancels->add(queued)) {
    leave_queue(*queued);
    return step.error();
  }
  open_.push_back(step);
  return {};
}

void SessionState::leave_queue(Queued& queued) {
  if (!queued.sync) --num_queued_async_;
  queued_.erase(queued.place);
}

void SessionState::give_turn(Step& step) {
  std::shared_ptr<Queued> next;
  {
    std::lock_guard lock(steps_mutex_);
    if (!step.is_waiting() || !std::exchange(step.has_turn, false)) return;
    --num_active_;
    next = claim_next();
  }
  start_queued(std::move(next));
}

void SessionState::take_turn(Step& step) {
  std::lock_guard lock(steps_mutex_);
  if (step.is_waiting() || std::exchange(step.has_turn, true)) return;
  ++num_active_;
}

std::shared_ptr<SessionState::Queued> SessionState::claim_next() {
  if (num_active_ >= options_.max_active_runs) return nullptr;
  // Those that are being cancelled leave by themselves.
  const auto first = std::ranges::find_if(
      queued_, [](const auto& queued) { return queued->claim(); });
  if (first == queued_.end()) return nullptr;
  std::shared_ptr<Queued> next = *first;
  leave_queue(*next);
  ++num_active_;
  next->step->has_turn = true;
  return next;
}

void SessionState::start_queued(std::shared_ptr<Queued> next) {
  while (next != nullptr) {
    const std::shared_ptr<Step> step = next->step;
    Status status = next->prepared->executable->start(
        step, next->feeds, /*lend=*/false, next->count);
    if (status.ok()) {
      std::lock_guard lock(steps_mutex_);
      next = claim_next();
    } else {
      next = leave(*step);
      step->answer_on_worker(std::move(status), {});
    }
  }
}

void SessionState::drop_queued(Queued& queued) {
  const std::shared_ptr<Step> step = queued.step;
  {
    std::lock_guard lock(steps_mutex_);
    leave_queue(queued);
    open_.erase(StepList::s_iterator_to(*step));
    if (open_.empty()) steps_changed_.notify_all();
  }
  return_border(*step);
  Timer::forget(step->deadline_entry);
  const Status reason = step->error();
  step->answer(error(reason.code(), "{}; it was still waiting for its turn",
                     reason.message()));
}

std::shared_ptr<SessionState::Queued> SessionState::leave(Step& step) {
  return_border(step);
  if (step.token_hook != nullptr) step.token_hook->claim();
  Timer::forget(step.deadline_entry);
  std::lock_guard lock(steps_mutex_);
  open_.erase(StepList::s_iterator_to(step));
  if (std::exchange(step.has_turn, false)) --num_active_;
  if (open_.empty()) steps_changed_.notify_all();
  return claim_next();
}

// Its owner keeps this session until the step is freed.
void SessionState::end_step(Step& step, Step::Answer answer,
                            const RunStats& stats) {
  // Who has the answer finds a place that is free, but none that is another's.
  std::shared_ptr<Queued> next = leave(step);
  step.answer_on_worker(std::move(answer), stats);
  start_queued(std::move(next));
}

Result<std::vector<Tensor>> SessionState::run(
    const std::shared_ptr<const Prepared>& prepared,
    std::span<const Tensor> feeds, const RunOptions& options,
    RunStats* stats) try {
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] run was called from a `done` or a thread of an "
                 "engine, which must not wait; use run_async");
  TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
  TAGFLOW_RETURN_IF_ERROR(check_call(*prepared, feeds, options));
  const auto begin = std::chrono::steady_clock::now();
  const std::shared_ptr<Step> step = make_step(*prepared, options, nullptr);
  const std::shared_ptr<const Prepared> frozen = frozen_form(*prepared);
  const auto& form = frozen != nullptr ? frozen : prepared;
  TAGFLOW_RETURN_IF_ERROR(submit(step, form, feeds, /*sync=*/true,
                                 /*count=*/stats != nullptr));
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
  const Engine::Lent lent(Engine::Lender::kDone);
  // It may hold the last reference to the session: gone when it has returned.
  const Done once = std::exchange(done, nullptr);
  Status thrown = guarded("session", [&] { once(std::move(answer), stats); });
  if (thrown.ok()) return;
  // What is thrown by who hears the warning is nobody's any more.
  (void)guarded([&] {
    warn(std::move(thrown)
             .with_prefix("the `done` of an asynchronous run threw: ")
             .to_string());
  });
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
    step = make_step(*prepared, options, std::move(on_answer));
    if (step->timeout.count() > 0) devices_->engine().watch_deadline(*step);
    if (auto frozen = frozen_form(*prepared)) prepared = std::move(frozen);
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

// --- The end ----------------------------------------------------------------

Status SessionState::close(std::optional<std::chrono::nanoseconds> deadline) {
  const auto closed = [] {
    return error(Code::kCancelled, "[session] the session was closed");
  };
  TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
  std::unique_lock lock(steps_mutex_);
  closed_ = true;
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
  cache_.clear();
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] the session is closed, but a `done` or a thread "
                 "of an engine must not wait for the runs to end");
  lock.lock();
  const auto is_over = [this] { return open_.empty() && num_unanswered_ == 0; };
  if (!deadline) {
    steps_changed_.wait(lock, is_over);
  } else if (!steps_changed_.wait_for(
                 lock, std::min(*deadline, kLongestTimeout), is_over)) {
    is_left_ = true;
    return error(Code::kDeadlineExceeded,
                 "[session] the session is closed, but it still has {} after "
                 "{} s",
                 open_.empty() ? counted(num_unanswered_, "pending answer")
                               : counted(open_.size(), "open run"),
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

bool SessionState::is_closed() {
  std::lock_guard lock(steps_mutex_);
  return closed_;
}

Status SessionState::closed_session() {
  return error(Code::kFailedPrecondition, "[session] the session is closed");
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
  const auto describe = [](const Step& step) {
    return fmt::format("run {} waits for {}", step.info.step_id,
                       step.describe_waits());
  };
  return fmt::format(
      "[session] the session is stalled: only another run could end the waits "
      "of {}:\n  {}",
      counted(open_.size(), "open run"),
      first_of(open_, kMostNamed, describe, "\n  ", "\n  "));
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
