#include "net/protocol/members.h"

#include <algorithm>
#include <utility>

namespace tagflow::net {

Members::Members(std::vector<std::string> names, std::string digest,
                 LifeRules rules)
    : names_(std::move(names)),
      digest_(std::move(digest)),
      rules_(rules),
      members_(names_.size()) {}

TaskIndex Members::add(std::string name) {
  names_.push_back(std::move(name));
  members_.emplace_back();
  return TaskIndex{uint32_t(names_.size() - 1)};
}

Status Members::on_hello(const Hello& hello, Time now) {
  const auto index = size_t(hello.task);
  if (index >= names_.size())
    return error(Code::kNotFound,
                 "[members] the cluster has {} tasks: none has the index {}",
                 names_.size(), index);
  const std::string& task = names_[index];
  if (hello.incarnation == Incarnation::kNone)
    return invalid_argument("[members] {} joins with the incarnation 0", task);
  if (hello.digest != digest_)
    return error(Code::kFailedPrecondition,
                 "[members] {} has another build than its master: its digest "
                 "is {}, the master's is {}",
                 task, hello.digest, digest_);
  if (members_[index])
    return error(Code::kAlreadyExists,
                 "[members] {} is a member already, by incarnation {:016x}",
                 task, uint64_t(members_[index]->incarnation));
  if (lost_.contains(hello.incarnation))
    return error(Code::kAborted,
                 "[members] {}: incarnation {:016x} was lost, which is final",
                 task, uint64_t(hello.incarnation));
  members_[index] =
      Member{hello.incarnation, State::kJoining, Life(now, rules_)};
  return Status();
}

void Members::on_ready(TaskIndex task, Incarnation incarnation) {
  Member* member = find(task, incarnation);
  if (member != nullptr && member->state == State::kJoining)
    member->state = State::kReady;
}

void Members::on_drain(TaskIndex task, Incarnation incarnation) {
  if (Member* member = find(task, incarnation))
    member->state = State::kDraining;
}

void Members::on_heard(TaskIndex task, Incarnation incarnation) {
  if (Member* member = find(task, incarnation)) member->life.on_heard();
}

void Members::on_lost(TaskIndex task, Incarnation incarnation,
                      const Status& why, Actions& actions) {
  if (find(task, incarnation) != nullptr) lose(task, why, actions);
}

void Members::on_time(Time now, Actions& actions) {
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i]) continue;
    const TaskIndex task{uint32_t(i)};
    switch (members_[i]->life.on_time(now)) {
      case Life::Verdict::kNothing:
        break;
      case Life::Verdict::kPing:
        actions.push_back(Ping{task});
        break;
      case Life::Verdict::kLost:
        lose(task,
             error(Code::kUnavailable, "it was silent for {} ms",
                   whole_milliseconds(rules_.interval * rules_.most_missed)),
             actions);
        break;
    }
  }
}

Time Members::next() const {
  Time next = kNever;
  for (const auto& member : members_)
    if (member) next = std::min(next, member->life.next());
  return next;
}

Members::State Members::state(TaskIndex task) const {
  const auto& member = members_[size_t(task)];
  return member ? member->state : State::kLost;
}

Incarnation Members::incarnation(TaskIndex task) const {
  const auto& member = members_[size_t(task)];
  return member ? member->incarnation : Incarnation::kNone;
}

Members::Member* Members::find(TaskIndex task, Incarnation incarnation) {
  if (size_t(task) >= members_.size()) return nullptr;
  auto& member = members_[size_t(task)];
  return member && member->incarnation == incarnation ? &*member : nullptr;
}

void Members::lose(TaskIndex task, const Status& why, Actions& actions) {
  auto& member = members_[size_t(task)];
  const Incarnation incarnation = member->incarnation;
  const char* const fate =
      member->state == State::kDraining ? "has left" : "is lost";
  lost_.insert(incarnation);
  member.reset();
  actions.push_back(Lost{task, incarnation,
                         error(Code::kUnavailable, "[members] {} {}: {}",
                               name(task), fate, why.message())});
}

}  // namespace tagflow::net
