#include "net/protocol/master_step.h"

#include <algorithm>

namespace tagflow::net {

MasterStep::MasterStep(StepId id, std::vector<Part> parts,
                       std::vector<Pair> pairs, Limits limits)
    : id_(id), pairs_(std::move(pairs)), limits_(limits) {
  parts_.reserve(parts.size());
  for (Part& part : parts) parts_.push_back({.part = std::move(part)});
}

void MasterStep::begin(Actions& actions) {
  for (const State& state : parts_) actions.push_back(SendRun{state.part.task});
}

void MasterStep::on_failed(TaskIndex task, const Status& status, Time now,
                           Actions& actions) {
  const State* state = find(task);
  if (state == nullptr || state->is_over()) return;
  fail(Rank::kError, status, now, actions);
}

Status MasterStep::on_done(TaskIndex task, const Done& done, Time now,
                           Actions& actions) {
  State* state = find(task);
  if (state == nullptr)
    return invalid_argument(
        "[run] task {} says Done of step {}, which is not "
        "on it",
        uint32_t(task), uint64_t(id_));
  if (state->is_done)
    return invalid_argument("[run] {} says Done of step {} twice",
                            state->part.name, uint64_t(id_));
  if (is_answered() || state->is_lost) return Status();
  state->is_done = true;
  state->has_committed = done.has_committed;
  if (!done.status.ok()) {
    if (!done.is_cause) state->waits = std::string(done.status.message());
    fail(done.is_cause ? Rank::kError : Rank::kConsequence, done.status, now,
         actions);
  }
  answer_if_over(actions);
  return Status();
}

void MasterStep::on_lost(TaskIndex task, Incarnation incarnation,
                         const Status& reason, Time now, Actions& actions) {
  State* state = find(task);
  if (is_answered() || state == nullptr || state->is_lost ||
      state->part.incarnation != incarnation)
    return;
  state->is_lost = true;
  fail(Rank::kLoss, reason, now, actions);
  answer_if_over(actions);
}

void MasterStep::on_pair_lost(TaskIndex task, TaskIndex peer,
                              Incarnation incarnation, const Status& reason,
                              Time now, Actions& actions) {
  const bool is_used =
      std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
        return pair == Pair(task, peer) || pair == Pair(peer, task);
      });
  if (!is_used) return;
  const State* one = find(task);
  const State* other = find(peer);
  if (other->part.incarnation != incarnation) return;
  if (one->is_done && other->is_done) return;
  fail(Rank::kLoss, reason, now, actions);
}

void MasterStep::on_stopped(const Status& cause, Time now, Actions& actions) {
  const bool is_cause = cause_.ok() || rank_ < Rank::kError;
  fail(Rank::kError, cause, now, actions);
  if (is_cause) is_stopped_ = true;
}

void MasterStep::on_time(Time now, Actions& actions) {
  if (phase_ == Phase::kRunning && now >= limits_.deadline)
    on_stopped(error(Code::kDeadlineExceeded, "[run] the time of step {} is up",
                     uint64_t(id_)),
               now, actions);
  if (phase_ != Phase::kAborting || now < patience_) return;
  patience_ = kNever;
  for (const State& state : parts_) {
    if (state.is_over()) continue;
    actions.push_back(
        Evict{state.part.task, state.part.incarnation,
              error(Code::kUnavailable, "it did not abort step {} within {} ms",
                    uint64_t(id_), whole_milliseconds(limits_.grace))});
  }
}

Time MasterStep::next() const {
  switch (phase_) {
    case Phase::kRunning:
      return limits_.deadline;
    case Phase::kAborting:
      return patience_;
    case Phase::kAnswered:
      break;
  }
  return kNever;
}

std::vector<std::string> MasterStep::running() const {
  std::vector<std::string> names;
  for (const State& state : parts_)
    if (!state.is_over()) names.push_back(state.part.name);
  return names;
}

MasterStep::State* MasterStep::find(TaskIndex task) {
  for (State& state : parts_)
    if (state.part.task == task) return &state;
  return nullptr;
}

void MasterStep::fail(Rank rank, const Status& cause, Time now,
                      Actions& actions) {
  if (is_answered()) return;
  if (rank > rank_ || cause_.ok()) {
    rank_ = rank;
    cause_ = cause;
  }
  if (phase_ == Phase::kAborting) return;
  phase_ = Phase::kAborting;
  patience_ = now + limits_.grace;
  for (const State& state : parts_)
    if (!state.is_over()) actions.push_back(SendAbort{state.part.task, cause_});
}

void MasterStep::answer_if_over(Actions& actions) {
  for (const State& state : parts_)
    if (!state.is_over()) return;
  phase_ = Phase::kAnswered;
  actions.push_back(Answer{answer_status(), tears()});
}

Status MasterStep::answer_status() const {
  if (!is_stopped_) return cause_;
  std::string waits;
  for (const State& state : parts_)
    if (!state.waits.empty())
      waits += fmt::format("; {}: {}", state.part.name, state.waits);
  return error(cause_.code(), "{}{}", cause_.message(), waits);
}

bool MasterStep::tears() const {
  if (cause_.ok()) return false;
  int num_updating = 0;
  bool has_committed = false;
  for (const State& state : parts_) {
    num_updating += state.part.updates;
    has_committed |= state.has_committed && !state.is_lost;
  }
  return num_updating > 1 && has_committed;
}

}  // namespace tagflow::net
