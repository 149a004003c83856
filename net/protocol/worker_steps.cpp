#include "net/protocol/worker_steps.h"

namespace tagflow::net {

Status WorkerSteps::on_run(StepId step, Actions& actions) {
  if (step <= last_run_)
    return invalid_argument(
        "[run] the master runs step {} after step {}: the numbers of steps "
        "grow",
        uint64_t(step), uint64_t(last_run_));
  last_run_ = step;
  active_.push_back({step, Phase::kRunning});
  actions.push_back(Start{step});
  return Status();
}

void WorkerSteps::on_abort(StepId step, const Status& cause, Actions& actions) {
  if (step > last_run_) {
    last_run_ = step;
    actions.push_back(Drop{step});
    actions.push_back(TellDone{step, {.status = Status(cause.code(), "")}});
    return;
  }
  Active* active = find(step);
  if (active == nullptr || active->phase != Phase::kRunning) return;
  active->phase = Phase::kAborted;
  actions.push_back(Drop{step});
  actions.push_back(Fail{step, cause});
}

void WorkerSteps::on_local_error(StepId step, const Status& status,
                                 Actions& actions) {
  Active* active = find(step);
  if (active == nullptr || active->phase != Phase::kRunning) return;
  active->phase = Phase::kFailedItself;
  actions.push_back(Drop{step});
  actions.push_back(TellFailed{step, status});
}

void WorkerSteps::on_local_over(StepId step, const Status& status,
                                bool has_committed, Actions& actions) {
  Active* active = find(step);
  if (active == nullptr) return;
  if (active->phase == Phase::kRunning && !status.ok())
    actions.push_back(Drop{step});
  const bool is_cause = !status.ok() && active->phase != Phase::kAborted;
  *active = active_.back();
  active_.pop_back();
  actions.push_back(TellDone{step,
                             {.status = status,
                              .is_cause = is_cause,
                              .has_committed = has_committed}});
}

WorkerSteps::Fate WorkerSteps::fate_of(StepId step) const {
  if (step > last_run_) return Fate::kKeep;
  for (const Active& active : active_)
    if (active.step == step)
      return active.phase == Phase::kRunning ? Fate::kDeliver : Fate::kDrop;
  return Fate::kDrop;
}

WorkerSteps::Active* WorkerSteps::find(StepId step) {
  for (Active& active : active_)
    if (active.step == step) return &active;
  return nullptr;
}

}  // namespace tagflow::net
