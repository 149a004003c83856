// The end of a session, and its counters.
#include <algorithm>
#include <array>

#include "actors/session/session_functions.h"
#include "actors/session/session_state.h"
#include "graph/counted.h"

namespace tagflow::actors {

// --- The end ----------------------------------------------------------------

Status SessionState::close(std::optional<std::chrono::nanoseconds> deadline) {
  const auto closed = [] {
    return error(Code::kCancelled, "[session] the session was closed");
  };
  TAGFLOW_RETURN_IF_ERROR(devices_->engine().check_process());
  // The session of its functions has a part of the time, not as much again.
  const Clock::time_point end =
      Clock::now() + std::min(deadline.value_or(kLongestTimeout),
                              std::chrono::nanoseconds(kLongestTimeout));
  std::unique_lock lock(steps_mutex_);
  closed_ = true;
  // Steps that were told to end are at the back.
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
  Status functions;
  if (functions_ != nullptr) functions = functions_->close(deadline);
  if (Engine::on_worker())
    return error(Code::kFailedPrecondition,
                 "[session] the session is closed, but a `done` or a thread "
                 "of an engine must not wait for the runs to end");
  lock.lock();
  const auto is_over = [this] { return open_.empty() && num_unanswered_ == 0; };
  if (!deadline) {
    steps_changed_.wait(lock, is_over);
  } else if (!steps_changed_.wait_until(lock, end, is_over)) {
    is_left_ = true;
    return error(Code::kDeadlineExceeded,
                 "[session] the session is closed, but it still has {} after "
                 "{} s",
                 open_.empty() ? counted(num_unanswered_, "pending answer")
                               : counted(open_.size(), "open run"),
                 std::chrono::duration<double>(*deadline).count());
  }
  return functions;
}

SessionHandle::~SessionHandle() {
  if (!state->device_set().engine().check_process().ok()) {
    // The state is leaked, since the parent's threads may have been using it.
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

// --- Stalls and counters ----------------------------------------------------

// Checks twice: if each step waited both times and no wait ended in between,
// all steps waited at the same time.
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
