#include "tests/net/protocol/sim_master.h"

#include <algorithm>
#include <utility>

namespace tagflow::net::simulated {

namespace {

std::vector<std::string> task_names(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(task_name(i));
  return names;
}

}  // namespace

std::string task_name(size_t index) {
  return "/job:worker/task:" + std::to_string(index);
}

Master::Master(World& world, Ledger& ledger, size_t num_workers, size_t host)
    : world_(world),
      ledger_(ledger),
      host_(host == 0 ? num_workers : host),
      members_(task_names(num_workers), "build"),
      links_(num_workers) {}

void Master::start() { world_.start(host_, this); }

void Master::end() {
  is_over_ = true;
  for (const auto& [link, worker] : workers_) world_.close(link, host_);
  workers_.clear();
  links_.assign(links_.size(), 0);
  steps_.clear();
}

bool Master::run_step(std::function<void()> on_answer) {
  std::vector<MasterStep::Part> parts;
  for (size_t i = 0; i < links_.size(); ++i) {
    const TaskIndex task{uint32_t(i)};
    if (members_.state(task) == Members::State::kReady)
      parts.push_back({task, members_.incarnation(task), task_name(i), false});
  }
  if (parts.empty()) return false;
  Random& random = world_.random();
  bool updates = random.percent(60);
  auto script = random_script(random, parts.size(), updates);
  if (!torn_.check(TornState::Effect::kUpdates).ok() && script.updates())
    script = restore_script(parts.size());
  MasterStep::Limits limits;
  if (random.percent(50)) limits.grace = milliseconds(random.between(250, 600));
  if (random.percent(10))
    limits.deadline = world_.now() + milliseconds(random.below(3000));
  const auto next = StepId{last_step_ + 1};
  if (random.percent(8))
    world_.after(milliseconds(random.below(200)), [this, next] {
      if (const StepPtr step = find(next)) cancel(step);
    });
  run(std::move(script), std::move(parts), limits, std::move(on_answer));
  return true;
}

void Master::run(Script script, std::vector<MasterStep::Part> parts,
                 MasterStep::Limits limits, std::function<void()> on_answer) {
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].updates = script.parts[i].updates;
  std::vector<MasterStep::Pair> pairs;
  for (auto [one, other] : script.pairs())
    pairs.emplace_back(parts[one].task, parts[other].task);

  const StepId id{++last_step_};
  Answered record;
  record.step = id;
  record.script = std::make_shared<Script>(std::move(script));
  record.parts = parts;
  record.begin = world_.now();
  record.deadline = limits.deadline;
  const size_t num_parts = parts.size();
  const auto step = std::make_shared<Step>(
      Step{std::move(record),
           MasterStep(id, std::move(parts), pairs, limits),
           DeadlockWatch(num_parts),
           torn_.num_torn(),
           {},
           std::move(on_answer)});
  steps_[id] = step;
  MasterStep::Actions actions;
  step->machine.begin(actions);
  perform(step, actions);
}

void Master::cancel() {
  for (const auto& [id, step] : std::map(steps_)) cancel(step);
}

void Master::cancel(const StepPtr& step) {
  if (step->machine.is_answered()) return;
  step->record.is_cancelled = true;
  MasterStep::Actions actions;
  step->machine.on_stopped(error(Code::kCancelled, "the client has cancelled"),
                           world_.now(), actions);
  perform(step, actions);
}

// --- Members ---

void Master::on_message(LinkId link, Message message) {
  if (const auto* hello = std::get_if<Members::Hello>(&message)) {
    const Status status = members_.on_hello(*hello, world_.now());
    world_.send(link, host_, Verdict{hello->incarnation, status});
    if (status.ok()) {
      workers_[link] = {hello->task, hello->incarnation};
      links_[size_t(hello->task)] = link;
    } else {
      world_.close(link, host_);
    }
    return arm();
  }
  const auto place = workers_.find(link);
  if (place == workers_.end()) return;
  const auto [task, incarnation] = place->second;
  members_.on_heard(task, incarnation);
  if (std::holds_alternative<Ready>(message))
    members_.on_ready(task, incarnation);
  else if (std::holds_alternative<Drain>(message)) {
    members_.on_drain(task, incarnation);
    departures_.add(task);
    let_go();
  } else
    on_worker(task, std::move(message));
}

void Master::let_go() {
  const auto is_needed = [this](TaskIndex task) {
    if (world_.is_planted(Planted::kLetsGoAtOnce)) return false;
    return std::any_of(steps_.begin(), steps_.end(), [&](const auto& step) {
      return index_of(*step.second, task) < step.second->record.parts.size();
    });
  };
  for (const TaskIndex task : departures_.take(is_needed)) send(task, Drain{});
}

void Master::on_closed(LinkId link) {
  const auto place = workers_.find(link);
  if (place == workers_.end()) return;
  const auto [task, incarnation] = place->second;
  Members::Actions actions;
  members_.on_lost(task, incarnation,
                   error(Code::kUnavailable, "its link has ended"), actions);
  perform(actions);
}

void Master::tick() {
  if (is_over_) return;
  Members::Actions actions;
  members_.on_time(world_.now(), actions);
  if (world_.is_planted(Planted::kSilenceIsNoLoss))
    actions.erase(std::remove_if(actions.begin(), actions.end(),
                                 [](const Members::Action& action) {
                                   return action.index() != 0;
                                 }),
                  actions.end());
  perform(actions);
  arm();
}

void Master::arm() {
  const Time next = members_.next();
  if (next == kNever || next == armed_) return;
  armed_ = next;
  world_.local(host_, next - world_.now(), [this, next] {
    if (armed_ != next) return;
    armed_ = kNever;
    tick();
  });
}

void Master::send(TaskIndex task, Message message) {
  world_.send(links_[size_t(task)], host_, std::move(message));
}

void Master::perform(const Members::Actions& actions) {
  for (const Members::Action& action : actions) {
    if (const auto* ping = std::get_if<Members::Ping>(&action)) {
      send(ping->task, Ping{});
      continue;
    }
    const auto& lost = std::get<Members::Lost>(action);
    const LinkId link = std::exchange(links_[size_t(lost.task)], 0);
    workers_.erase(link);
    departures_.remove(lost.task);
    world_.close(link, host_);
    for (const Ledger::Entry& entry : ledger_.entries)
      if (entry.incarnation == lost.incarnation) {
        torn_.on_torn(lost.reason);
        break;
      }
    for (const auto& [id, step] : std::map(steps_)) {
      const size_t index = index_of(*step, lost.task);
      if (index == step->record.parts.size()) continue;
      if (step->record.parts[index].incarnation == lost.incarnation)
        step->record.lost.push_back(lost.task);
      if (world_.is_planted(Planted::kLossAfterDone) &&
          step->done.contains(lost.task))
        continue;
      MasterStep::Actions further;
      step->machine.on_lost(lost.task, lost.incarnation, lost.reason,
                            world_.now(), further);
      perform(step, further);
    }
  }
}

// --- Steps ---

void Master::on_worker(TaskIndex task, Message message) {
  MasterStep::Actions actions;
  std::visit(
      Cases{
          [&](Ping&) { send(task, Pong{}); },
          [&](Abort& abort) {
            const StepPtr step = find(abort.step);
            if (step == nullptr) return;
            step->machine.on_failed(task, abort.status, world_.now(), actions);
            perform(step, actions);
          },
          [&](Done& done) {
            const StepPtr step = find(done.step);
            if (step == nullptr) return;
            step->record.value += done.value;
            step->record.fetched.merge(done.fetched);
            step->done.insert(task);
            const Status status =
                step->machine.on_done(task, done.done, world_.now(), actions);
            if (!status.ok())
              world_.violation("a protocol is broken: " + status.to_string());
            perform(step, actions);
            if (done.done.status.ok() && !step->machine.is_answered())
              perform(step,
                      step->watch.on_over(index_of(*step, task), done.counts));
          },
          [&](PairLost& lost) {
            const Status reason =
                error(Code::kUnavailable, "the link between {} and {} is lost",
                      task_name(size_t(task)), task_name(size_t(lost.peer)));
            for (const auto& [id, step] : std::map(steps_)) {
              MasterStep::Actions further;
              step->machine.on_pair_lost(task, lost.peer, lost.incarnation,
                                         reason, world_.now(), further);
              perform(step, further);
            }
          },
          [&](Report& report) {
            const StepPtr step = find(report.step);
            if (step == nullptr || !step->machine.is_running()) return;
            perform(step, step->watch.on_report(index_of(*step, task),
                                                report.report));
          },
          [](auto&) {}},
      message);
}

void Master::perform(const StepPtr& step, const MasterStep::Actions& actions) {
  for (const MasterStep::Action& action : actions)
    std::visit(
        Cases{[&](const MasterStep::SendRun& run) {
                send(run.task, Run{step->record.step, step->record.script,
                                   step->record.parts,
                                   index_of(*step, run.task), session_});
              },
              [&](const MasterStep::SendAbort& abort) {
                if (world_.is_planted(Planted::kAbortNotSpread)) return;
                send(abort.task, Abort{step->record.step, abort.cause});
              },
              [&](const MasterStep::Evict& evict) {
                if (world_.is_planted(Planted::kNoEviction)) {
                  MasterStep::Actions further;
                  step->machine.on_lost(evict.task, evict.incarnation,
                                        evict.reason, world_.now(), further);
                  return perform(step, further);
                }
                Members::Actions members;
                members_.on_lost(evict.task, evict.incarnation, evict.reason,
                                 members);
                perform(members);
              },
              [&](const MasterStep::Answer& given) { answer(step, given); }},
        action);
  arm(step);
}

void Master::perform(const StepPtr& step, DeadlockWatch::Decision decision) {
  if (decision == DeadlockWatch::Decision::kNothing) return;
  if (decision == DeadlockWatch::Decision::kAsk &&
      !world_.is_planted(Planted::kNoConfirmation)) {
    for (const MasterStep::Part& part : step->record.parts)
      send(part.task, Ask{step->record.step, step->watch.round()});
    return;
  }
  MasterStep::Actions actions;
  step->machine.on_stopped(error(Code::kDeadlock, "no part can go on"),
                           world_.now(), actions);
  perform(step, actions);
}

void Master::answer(const StepPtr& step, const MasterStep::Answer& given) {
  if (find(step->record.step) == nullptr)
    return world_.violation("a step is answered twice");
  step->record.end = world_.now();
  step->record.answer = given;
  if (given.tears) torn_.on_torn(given.status);
  if (given.status.ok() && step->record.script->restores &&
      step->record.parts.size() == links_.size())
    torn_.on_mended(step->num_torn);
  answered_.push_back(step->record);
  steps_.erase(step->record.step);
  let_go();
  if (step->on_answer) step->on_answer();
}

void Master::arm(const StepPtr& step) {
  const Time next = step->machine.next();
  if (next == kNever) return;
  world_.local(host_, std::max(next - world_.now(), Duration(0)), [this, step] {
    if (is_over_) return;
    MasterStep::Actions actions;
    step->machine.on_time(world_.now(), actions);
    if (!actions.empty()) perform(step, actions);
  });
}

Master::StepPtr Master::find(StepId id) const {
  const auto place = steps_.find(id);
  return place == steps_.end() ? nullptr : place->second;
}

size_t Master::index_of(const Step& step, TaskIndex task) {
  const auto& parts = step.record.parts;
  return size_t(std::find_if(parts.begin(), parts.end(),
                             [&](const MasterStep::Part& part) {
                               return part.task == task;
                             }) -
                parts.begin());
}

std::vector<Time> Master::waiting() const {
  std::vector<Time> begins;
  for (const auto& [id, step] : steps_) begins.push_back(step->record.begin);
  return begins;
}

}  // namespace tagflow::net::simulated
