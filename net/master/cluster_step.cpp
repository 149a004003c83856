#include "net/master/cluster_step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "actors/runtime/step.h"
#include "graph/fault.h"
#include "net/transfer/reports.h"
#include "net/wire/cases.h"

namespace tagflow::net {
namespace {

// For the answer of a part to come, beyond the time that it has.
constexpr std::chrono::milliseconds kRoundTrip{200};

Time now() { return std::chrono::steady_clock::now(); }

std::vector<MasterStep::Part> parts_of(const ClusterProgram& program) {
  std::vector<MasterStep::Part> parts;
  for (const ClusterPart& part : program.parts)
    parts.push_back({part.member->index(), part.member->incarnation(),
                     part.member->name(), part.updates_state});
  return parts;
}

}  // namespace

bool ClusterProgram::updates_state() const {
  return std::ranges::any_of(parts, &ClusterPart::updates_state);
}

ClusterStep::ClusterStep(uint64_t number, const ClusterProgram& program,
                         IoThread& clock, Duration grace, OnAnswer on_answer)
    : number_(number),
      program_(program),
      clock_(clock),
      on_answer_(std::move(on_answer)),
      machine_(StepId(number), parts_of(program), program.pairs,
               {.grace = grace}),
      watch_(program.parts.size()),
      waits_(program.parts.size()),
      fetches_(program.fetches.size()) {}

// --- Events -----------------------------------------------------------------

void ClusterStep::begin(const actors::RemotePart::Order& order) {
  Lock lock(mutex_);
  order_ = &order;
  trace_ = order.step.trace;
  if (order.step.hold != nullptr) order.step.hold->set_remote(weak_from_this());
  is_begun_ = true;
  MasterStep::Actions actions;
  machine_.begin(actions);
  perform(std::move(lock), actions);
}

void ClusterStep::stop(const Status& cause) {
  Lock lock(mutex_);
  MasterStep::Actions actions;
  machine_.on_stopped(cause, now(), actions);
  perform(std::move(lock), actions);
}

std::string ClusterStep::describe_wait() const {
  const Lock lock(mutex_);
  const auto names = machine_.running();
  return fmt::format("the part{} of {}", names.size() == 1 ? "" : "s",
                     fmt::join(names, ", "));
}

std::string ClusterStep::describe_stall() const {
  const Lock lock(mutex_);
  if (!machine_.is_running() || !watch_.is_stalled()) return {};
  std::string text;
  for (size_t i = 0; i < waits_.size(); ++i)
    if (!waits_[i].empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ",
                          program_.parts[i].member->name(), waits_[i]);
  return text;
}

Status ClusterStep::on_done(Member& member, const net::Done& done,
                            Result<MemberEvents::Fetches> fetches,
                            actors::TracePart* trace) {
  Lock lock(mutex_);
  if (machine_.is_answered()) return {};
  // Of a part that has failed, too.
  if (trace != nullptr) add_to_trace(member, std::move(*trace));
  MasterStep::Done said{.status = status_of(done.outcome),
                        .is_cause = done.is_cause,
                        .has_committed = done.has_committed};
  if (said.status.ok() && !fetches.ok()) {
    said.status = fetches.status();
    said.is_cause = true;
  }
  if (said.status.ok())
    for (auto& [index, tensor] : *fetches) {
      if (index >= fetches_.size() ||
          program_.fetches[index].task != member.index())
        return error(Code::kDataLoss, "[net] {} gives fetch {}, not its own",
                     member.name(), index);
      const ClusterProgram::Fetch& wanted = program_.fetches[index];
      if (tensor.dtype() != wanted.dtype ||
          !wanted.shape.accepts(tensor.shape()))
        return error(Code::kDataLoss,
                     "[net] {} gives {} for fetch {}, not {}{}", member.name(),
                     tensor.describe(), index, dtype_name(wanted.dtype),
                     wanted.shape.to_string());
      fetches_[index] = std::move(tensor);
    }
  actors::add_stats(stats_of(done.stats), stats_);
  MasterStep::Actions actions;
  TAGFLOW_RETURN_IF_ERROR(
      machine_.on_done(member.index(), said, now(), actions));
  if (said.status.ok() && machine_.is_running())
    perform(
        watch_.on_over(index_of(member.index()), {done.sent, done.received}),
        actions);
  perform(std::move(lock), actions);
  return {};
}

void ClusterStep::on_failed(Member& member, const Status& status) {
  Lock lock(mutex_);
  MasterStep::Actions actions;
  machine_.on_failed(member.index(), status, now(), actions);
  perform(std::move(lock), actions);
}

void ClusterStep::on_report(Member& member, const Report& report) {
  Lock lock(mutex_);
  // The program may have gone with the answer.
  if (!machine_.is_running()) return;
  const size_t index = index_of(member.index());
  if (index == program_.parts.size()) return;
  MasterStep::Actions actions;
  waits_[index] = report.waits;
  perform(watch_.on_report(index, {uint32_t(report.round),
                                   report.is_quiet,
                                   {report.sent, report.received},
                                   !report.waits.empty()}),
          actions);
  perform(std::move(lock), actions);
}

// --- Looking at it -----------------------------------------------------------

std::vector<actors::SeenPart> ClusterStep::look(
    std::chrono::nanoseconds patience) {
  using std::chrono::microseconds;
  std::vector<actors::SeenPart> parts;
  Lock lock(mutex_);
  // The program may have gone with the answer.
  if (!machine_.is_running() || !is_begun_) return parts;
  const Look look{
      number_, ++look_,
      uint64_t(std::chrono::duration_cast<microseconds>(patience).count())};
  seen_.assign(program_.parts.size(), std::nullopt);
  for (const ClusterPart& part : program_.parts) {
    parts.push_back({part.member->name(), std::nullopt});
    part.member->look(look);
  }
  seen_changed_.wait_for(lock, patience + kRoundTrip, [&] {
    return machine_.is_answered() || look_ != look.request ||
           std::ranges::all_of(seen_, &std::optional<Seen>::has_value);
  });
  if (look_ != look.request) return parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!seen_[i] || !seen_[i]->has_view) continue;
    parts[i].view = std::move(seen_[i]->view);
    parts[i].view->step = number_;
  }
  return parts;
}

void ClusterStep::on_seen(Member& member, Seen seen) {
  const Lock lock(mutex_);
  if (!machine_.is_running() || seen.request != look_) return;
  const size_t index = index_of(member.index());
  if (index >= seen_.size()) return;
  seen_[index] = std::move(seen);
  seen_changed_.notify_all();
}

void ClusterStep::steer(const Steer& steer) {
  const Lock lock(mutex_);
  if (!machine_.is_running() || !is_begun_) return;
  for (const ClusterPart& part : program_.parts) part.member->steer(steer);
}

void ClusterStep::stop_at(const std::optional<actors::StopPoint>& stop) {
  steer(stop ? Steer{number_, Steer::What::kStop, stop->frame, stop->iteration}
             : Steer{.step = number_});
}

void ClusterStep::advance(const std::string& frame) {
  steer({number_, Steer::What::kNext, frame});
}

void ClusterStep::on_pair_lost(Member& member, TaskIndex peer,
                               Incarnation incarnation, const Status& reason) {
  Lock lock(mutex_);
  if (!is_begun_) return;
  MasterStep::Actions actions;
  machine_.on_pair_lost(member.index(), peer, incarnation, reason, now(),
                        actions);
  perform(std::move(lock), actions);
}

void ClusterStep::on_lost(TaskIndex task, Incarnation incarnation,
                          const Status& reason) {
  Lock lock(mutex_);
  if (!is_begun_) return;
  MasterStep::Actions actions;
  machine_.on_lost(task, incarnation, reason, now(), actions);
  perform(std::move(lock), actions);
}

void ClusterStep::on_time() {
  Lock lock(mutex_);
  alarm_ = kNever;
  MasterStep::Actions actions;
  machine_.on_time(now(), actions);
  perform(std::move(lock), actions);
}

// --- Actions ----------------------------------------------------------------

void ClusterStep::perform(Lock lock, const MasterStep::Actions& actions) {
  // The answer may drop what keeps this.
  const std::shared_ptr<ClusterStep> self = shared_from_this();
  Rest rest;
  for (const MasterStep::Action& action : actions) perform(action, rest);
  // After all Runs, since an Abort must not come before its Run.
  for (auto& [task, status] : std::exchange(rest.unsent, {})) {
    MasterStep::Actions further;
    static_cast<void>(
        machine_.on_done(task, {status, true, false}, now(), further));
    for (const MasterStep::Action& action : further) perform(action, rest);
  }
  if (const Time next = machine_.next(); next < alarm_) {
    alarm_ = next;
    clock_.post_after(next - now(), [step = weak_from_this()] {
      if (const auto alive = step.lock()) alive->on_time();
    });
  }
  order_ = nullptr;
  lock.unlock();
  for (const auto& [member, reason] : rest.evicted) member->close(reason);
  if (!rest.is_answered) return;
  if (rest.answer.status.ok()) {
    on_answer_({std::move(fetches_), stats_}, false);
  } else {
    on_answer_({rest.answer.status, stats_}, rest.answer.tears);
  }
}

void ClusterStep::perform(const MasterStep::Action& action, Rest& rest) {
  std::visit(Cases{[&](const MasterStep::SendRun& run) {
                     Status status = send_run(part_of(run.task));
                     if (!status.ok())
                       rest.unsent.emplace_back(run.task, std::move(status));
                   },
                   [&](const MasterStep::SendAbort& abort) {
                     part_of(abort.task).member->abort(number_, abort.cause);
                   },
                   [&](const MasterStep::Evict& evict) {
                     Member* const member = part_of(evict.task).member;
                     rest.evicted.emplace_back(member, evict.reason);
                   },
                   [&](const MasterStep::Answer& answer) {
                     rest.is_answered = true;
                     rest.answer = answer;
                   }},
             action);
}

void ClusterStep::perform(DeadlockWatch::Decision decision,
                          MasterStep::Actions& actions) {
  if (decision == DeadlockWatch::Decision::kNothing ||
      decision == DeadlockWatch::Decision::kStall)
    return;
  if (decision == DeadlockWatch::Decision::kAsk) {
    for (const ClusterPart& part : program_.parts)
      part.member->ask(number_, watch_.round());
    return;
  }
  machine_.on_stopped(
      error(Code::kDeadlock, "[session] the step can make no progress"), now(),
      actions);
}

Status ClusterStep::send_run(const ClusterPart& part) {
  const actors::Step& step = order_->step;
  Run run{.executable = part.executable, .step = number_};
  run.seed = step.info.seed;
  run.has_stats = order_->count;
  if (step.hold != nullptr) {
    run.may_be_held = true;
    if (const auto stop = step.hold->stop())
      run.stop = Run::Stop{stop->frame, stop->iteration};
  }
  if (trace_ != nullptr) {
    run.trace_words = trace_->room();
    if (run.trace_words == 0)
      add_to_trace(*part.member, actors::TracePart::missing());
  }
  std::vector<std::pair<uint32_t, Tensor>> feeds;
  for (const uint32_t feed : part.feeds)
    feeds.emplace_back(feed, order_->feeds[feed]);
  return part.member->run(std::move(run), feeds);
}

void ClusterStep::add_to_trace(const Member& member, actors::TracePart part) {
  if (trace_ == nullptr) return;
  // Without memory, the trace lacks some of it.
  static_cast<void>(
      guarded([&] { trace_->add_part(member.name(), std::move(part)); }));
}

size_t ClusterStep::index_of(TaskIndex task) const {
  return size_t(std::ranges::find_if(program_.parts,
                                     [&](const ClusterPart& part) {
                                       return part.member->index() == task;
                                     }) -
                program_.parts.begin());
}

const ClusterPart& ClusterStep::part_of(TaskIndex task) const {
  return program_.parts[index_of(task)];
}

}  // namespace tagflow::net
