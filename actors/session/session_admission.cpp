// Steps that wait for the border, or for their turn behind other steps.
#include <algorithm>

#include "actors/session/session_state.h"
#include "actors/shared_state.h"
#include "graph/counted.h"
#include "graph/fault.h"

namespace tagflow::actors {

// A step that cannot start yet, with the arguments of its start.
struct SessionState::Waiting {
  const std::shared_ptr<Step> step;  // keeps the session
  const std::shared_ptr<const Prepared> prepared;
  const std::vector<Tensor> feeds;
  const bool sync;  // a thread waits for the answer
  const bool count;
};

// Waits behind other steps.
class SessionState::Queued : public devices::CancelHook, public Waiting {
 public:
  Queued(SessionState& session, Waiting waiting)
      : Waiting(std::move(waiting)), session_(session) {}

  Queue::iterator place;  // guarded by the session's steps_mutex_

 protected:
  void on_cancel() override { session_.drop_queued(*this); }

 private:
  SessionState& session_;
};

// Is granted the border, or is cancelled before.
class SessionState::AtBorder : public devices::StateLock::Waiter,
                               public Waiting {
 public:
  AtBorder(SessionState& session, devices::StateLock& border, Waiting waiting)
      : Waiting(std::move(waiting)), session_(session), border_(border) {}

  devices::StateLock& border() const { return border_; }

  void on_granted() override {
    // This may hold the last reference to the session.
    const std::shared_ptr<Step> alive = step;
    alive->passed = &border_;
    session_.leave_border(*alive);
    Status status = guarded("session", [&] {
      return session_.submit_passed(alive, prepared, feeds, sync,
                                    /*lend=*/false, count);
    });
    if (status.ok()) return;
    session_.return_border(*alive);
    alive->answer_on_worker(std::move(status), {});
  }

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
  devices::StateLock& border_;
};

Status SessionState::submit(const std::shared_ptr<Step>& step,
                            const std::shared_ptr<const Prepared>& prepared,
                            std::span<const Tensor> feeds, bool sync,
                            bool count) {
  if (prepared->updates_state || prepared->moves_elements) {
    SharedState& state = *options_.state;
    devices::StateLock& border =
        prepared->updates_state ? state.border() : state.element_border();
    if (!border.try_lock(devices::StateLock::Mode::kShared))
      return wait_at_border(std::make_shared<AtBorder>(
          *this, border,
          Waiting{step, prepared, {feeds.begin(), feeds.end()}, sync, count}));
    step->passed = &border;
  }
  Status status = guarded("session", [&] {
    return submit_passed(step, prepared, feeds, sync, sync, count);
  });
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
  try {
    waiting->border().wait(devices::StateLock::Mode::kShared, waiting);
  } catch (...) {
    // A cancellation that came first has answered the run.
    if (!waiting->claim()) return {};
    leave_border(step);
    throw;
  }
  return {};
}

void SessionState::leave_border(Step& step) {
  std::lock_guard lock(steps_mutex_);
  open_.erase(StepList::s_iterator_to(step));
  if (open_.empty()) steps_changed_.notify_all();
}

void SessionState::return_border(Step& step) {
  if (auto* const border = std::exchange(step.passed, nullptr))
    border->unlock(devices::StateLock::Mode::kShared);
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
      return enqueue(std::make_shared<Queued>(
          *this,
          Waiting{step, prepared, {feeds.begin(), feeds.end()}, sync, count}));
    }
    ++num_active_;
    step->is_active = true;
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

void SessionState::deactivate(Step& step) {
  std::shared_ptr<Queued> next;
  {
    std::lock_guard lock(steps_mutex_);
    if (!step.is_waiting() || !std::exchange(step.is_active, false)) return;
    --num_active_;
    next = admit_next();
  }
  start_queued(std::move(next));
}

void SessionState::activate(Step& step) {
  std::lock_guard lock(steps_mutex_);
  if (step.is_waiting() || std::exchange(step.is_active, true)) return;
  ++num_active_;
}

std::shared_ptr<SessionState::Queued> SessionState::admit_next() {
  if (num_active_ >= options_.max_active_runs) return nullptr;
  // Queued runs that are being cancelled leave by themselves.
  const auto first = std::ranges::find_if(
      queued_, [](const auto& queued) { return queued->claim(); });
  if (first == queued_.end()) return nullptr;
  std::shared_ptr<Queued> next = *first;
  leave_queue(*next);
  ++num_active_;
  next->step->is_active = true;
  return next;
}

void SessionState::start_queued(std::shared_ptr<Queued> next) {
  while (next != nullptr) {
    const std::shared_ptr<Step> step = next->step;
    Status status = next->prepared->executable->start(
        step, next->feeds, /*lend=*/false, next->count);
    if (status.ok()) {
      std::lock_guard lock(steps_mutex_);
      next = admit_next();
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
  if (std::exchange(step.is_active, false)) --num_active_;
  if (open_.empty()) steps_changed_.notify_all();
  return admit_next();
}

// Its owner keeps this session until the step is freed.
void SessionState::end_step(Step& step, Step::Answer answer,
                            const RunStats& stats) {
  // The step leaves before its answer, so that its client finds a free place,
  // but not that of a queued run.
  std::shared_ptr<Queued> next = leave(step);
  if (answers_at_once_) {
    step.answer(std::move(answer), stats);
  } else {
    step.answer_on_worker(std::move(answer), stats);
  }
  start_queued(std::move(next));
}

}  // namespace tagflow::actors
