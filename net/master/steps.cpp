#include "net/master/steps.h"

#include <algorithm>
#include <utility>

#include "actors/runtime/step.h"
#include "graph/fault.h"
#include "net/transfer/reports.h"

namespace tagflow::net {
namespace {

ClusterFigures::State state_of(Members::State state) {
  using State = ClusterFigures::State;
  switch (state) {
    case Members::State::kJoining:
      return State::kJoining;
    case Members::State::kReady:
      return State::kReady;
    case Members::State::kDraining:
      return State::kLeaving;
    case Members::State::kLost:
      break;
  }
  return State::kLost;
}

}  // namespace

Steps::Steps(IoThread& clock, Options options)
    : clock_(clock),
      names_(options.names),
      grace_(options.grace),
      on_event_(std::move(options.on_event)),
      members_(std::move(options.names), ""),
      ready_(names_.size()),
      lost_(names_.size()),
      torn_(options.tolerates_torn_state) {}

// --- Members ----------------------------------------------------------------

Status Steps::on_hello(TaskIndex task, Incarnation incarnation) {
  const std::lock_guard lock(mutex_);
  return members_.on_hello({task, incarnation, ""},
                           std::chrono::steady_clock::now());
}

void Steps::on_ready(const Member& member) {
  const std::lock_guard lock(mutex_);
  members_.on_ready(member.index(), member.incarnation());
  ready_[size_t(member.index())] = &member;
}

std::vector<ClusterFigures::Member> Steps::members() const {
  std::vector<ClusterFigures::Member> all(names_.size());
  std::vector<const Member*> ready;
  {
    const std::lock_guard lock(mutex_);
    ready = ready_;
    for (size_t i = 0; i < all.size(); ++i)
      all[i].state = state_of(members_.state(TaskIndex(i)));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (ready[i] != nullptr) all[i].link = ready[i]->link();
    all[i].link.peer = names_[i];
  }
  return all;
}

Status Steps::lost(TaskIndex task) const {
  const std::lock_guard lock(mutex_);
  return members_.state(task) == Members::State::kLost ? lost_[size_t(task)]
                                                       : Status();
}

void Steps::on_lost(Member& member, const Status& why) {
  Members::Actions actions;
  {
    const std::lock_guard lock(mutex_);
    departures_.remove(&member);
    members_.on_lost(member.index(), member.incarnation(), why, actions);
    for (const Members::Action& action : actions)
      if (const auto* lost = std::get_if<Members::Lost>(&action)) {
        lost_[size_t(lost->task)] = lost->reason;
        if (with_state_.erase(lost->incarnation) > 0)
          torn_.on_lost(lost->reason);
      }
  }
  for (const Members::Action& action : actions) {
    const auto* lost = std::get_if<Members::Lost>(&action);
    if (lost == nullptr) continue;
    tell(lost->reason, member.name(), 0);
    for (const auto& step : all())
      step->on_lost(lost->task, lost->incarnation, lost->reason);
  }
}

Status Steps::check_state() const {
  const std::lock_guard lock(mutex_);
  return torn_.check_snapshot();
}

uint64_t Steps::num_torn() const {
  const std::lock_guard lock(mutex_);
  return torn_.num_torn();
}

void Steps::on_mended(uint64_t num_torn) {
  const std::lock_guard lock(mutex_);
  torn_.on_mended(num_torn);
}

// --- Steps ------------------------------------------------------------------

Status Steps::check_members(const ClusterProgram& program) const {
  for (const ClusterPart& part : program.parts) {
    const TaskIndex task = part.member->index();
    if (!is_member(task, part.member->incarnation()))
      return lost_[size_t(task)];
  }
  return {};
}

Status Steps::check_pairs(const ClusterProgram& program) const {
  for (const MasterStep::Pair& pair : program.pairs) {
    const auto loss = pair_losses_.find(pair);
    if (loss != pair_losses_.end() &&
        loss->second.number > program.num_pair_losses)
      return loss->second.reason;
  }
  return {};
}

Status Steps::check_links(const ClusterProgram& program) const {
  const std::lock_guard lock(mutex_);
  TAGFLOW_RETURN_IF_ERROR(check_members(program));
  return check_pairs(program);
}

bool Steps::has_lost_pair(const ClusterProgram& program) const {
  const std::lock_guard lock(mutex_);
  return check_members(program).ok() && !check_pairs(program).ok();
}

uint64_t Steps::num_pair_losses() const {
  const std::lock_guard lock(mutex_);
  return num_pair_losses_;
}

Status Steps::check(const ClusterProgram& program) const {
  TAGFLOW_RETURN_IF_ERROR(check_members(program));
  TAGFLOW_RETURN_IF_ERROR(check_pairs(program));
  for (const ClusterPart& part : program.parts)
    if (members_.state(part.member->index()) == Members::State::kDraining)
      return error(Code::kUnavailable,
                   "[net] {} is leaving the cluster: it runs no further step",
                   part.member->name());
  return torn_.check(program.updates_state() ? TornState::Effect::kUpdates
                                             : TornState::Effect::kReads);
}

void Steps::start(const ClusterProgram& program,
                  const actors::RemotePart::Order& order, Done done) {
  std::unique_lock ordered(order_mutex_);
  const uint64_t number = ++last_number_;
  counts_.on_begin();
  const auto step = std::make_shared<ClusterStep>(
      number, program, clock_, grace_,
      [this, number, done](ClusterStep::Done answer, bool tears) {
        on_answer(number, tears, answer.fetches.status());
        done(std::move(answer));
      });
  {
    std::unique_lock lock(mutex_);
    if (Status refused = check(program); !refused.ok()) {
      lock.unlock();
      ordered.unlock();
      counts_.on_end(refused.code());
      tell(refused, "", number);
      return done({std::move(refused), {}});
    }
    running_.emplace(number, Running{step, &program, order.step.info.step_id});
    for (const ClusterPart& part : program.parts)
      if (part.updates_state) with_state_.insert(part.member->incarnation());
  }
  step->begin(order);
}

void Steps::stop(const ClusterProgram& program, uint64_t step,
                 const Status& cause) {
  if (const auto running = find(program, step)) running->stop(cause);
}

std::string Steps::describe_wait(const ClusterProgram& program,
                                 uint64_t step) const {
  const auto running = find(program, step);
  return running == nullptr ? "nothing" : running->describe_wait();
}

std::string Steps::describe_stall(const ClusterProgram& program,
                                  uint64_t step) const {
  const auto running = find(program, step);
  return running == nullptr ? "" : running->describe_stall();
}

void Steps::tell(const Status& what, const std::string& peer,
                 uint64_t step) const {
  if (!on_event_ || is_leaving_) return;
  static_cast<void>(guarded([&] {
    Event event = Event::news(what, peer);
    if (step != 0) event.step = step;
    on_event_(event);
  }));
}

void Steps::on_answer(uint64_t number, bool tears, const Status& status) {
  counts_.on_end(status.code());
  if (!status.ok()) tell(status, "", number);
  {
    const std::lock_guard lock(mutex_);
    running_.erase(number);
    if (tears) torn_.on_torn(status);
    if (departures_.empty()) return;
  }
  let_go();
}

void Steps::on_drain(Member& member) {
  {
    const std::lock_guard lock(mutex_);
    // It may be lost already.
    if (!is_member(member.index(), member.incarnation())) return;
    members_.on_drain(member.index(), member.incarnation());
    departures_.add(&member);
  }
  let_go();
}

void Steps::let_go() {
  std::vector<Member*> free;
  {
    const std::lock_guard lock(mutex_);
    free = departures_.take([this](Member* member) {
      return std::ranges::any_of(running_, [&](const auto& running) {
        return std::ranges::count(running.second.program->parts, member,
                                  &ClusterPart::member) > 0;
      });
    });
  }
  // No step that needs them has begun meanwhile: see check().
  for (Member* const member : free) member->let_go();
}

Status Steps::on_done(Member& member, const net::Done& done,
                      Result<Fetches> fetches, actors::TracePart* trace) {
  const auto step = find(done.step);
  if (step == nullptr) return {};
  return step->on_done(member, done, std::move(fetches), trace);
}

void Steps::on_failed(Member& member, uint64_t number, Status status) {
  if (const auto step = find(number)) step->on_failed(member, status);
}

void Steps::on_report(Member& member, const Report& report) {
  if (const auto step = find(report.step)) step->on_report(member, report);
}

void Steps::on_seen(Member& member, Seen seen) {
  if (const auto step = find(seen.step)) step->on_seen(member, std::move(seen));
}

void Steps::on_pair_lost(Member& member, const PairLost& lost) {
  const std::string peer = lost.peer.to_string();
  const auto place = std::ranges::find(names_, peer);
  if (place == names_.end()) return;
  const Status reason =
      error(Code::kUnavailable, "[net] {} has lost its links to {}: {}",
            member.name(), peer, lost.reason.message);
  const TaskIndex task{uint32_t(place - names_.begin())};
  const Incarnation incarnation{lost.incarnation};
  {
    // Each end tells it, perhaps long after the other. So a program that was
    // registered in between is registered once more: one of its ends may use
    // what the other has lost.
    const std::lock_guard lock(mutex_);
    if (is_member(member.index(), member.incarnation()) &&
        is_member(task, incarnation))
      pair_losses_[std::minmax(member.index(), task)] = {++num_pair_losses_,
                                                         reason};
  }
  tell(reason, peer, 0);
  for (const auto& step : all())
    step->on_pair_lost(member, task, incarnation, reason);
}

std::shared_ptr<ClusterStep> Steps::find(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(number);
  return found == running_.end() ? nullptr : found->second.step;
}

std::shared_ptr<ClusterStep> Steps::find(const ClusterProgram& program,
                                         uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, running] : running_)
    if (running.program == &program && running.id == id) return running.step;
  return nullptr;
}

std::vector<std::shared_ptr<ClusterStep>> Steps::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ClusterStep>> steps;
  for (const auto& [number, running] : running_) steps.push_back(running.step);
  return steps;
}

}  // namespace tagflow::net
