#include "net/control/directory.h"

#include <algorithm>
#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <tuple>
#include <utility>

#include "graph/fault.h"
#include "net/link/silence.h"

namespace tagflow::net {
namespace {

// Names of tasks are kept when their workers have gone.
constexpr size_t kMostTasks = size_t{1} << 16;

Status not_a_member() {
  return error(Code::kAborted, "[directory] the sender is not a member");
}

caf::result<caf::ok_atom> answer(const Status& status) {
  if (status.ok()) return caf::ok_atom_v;
  return to_caf(status);
}

caf::result<std::string> answer(Result<std::string> bytes) {
  if (bytes.ok()) return std::move(*bytes);
  return to_caf(bytes.status());
}

}  // namespace

Directory::Directory(caf::actor_config& config, Options options)
    : Annotated(config),
      options_(std::move(options)),
      members_({}, "", {LifeSigns().interval, LifeSigns().most_silent}) {
  harden(*this);
  set_down_handler([this](const caf::down_msg& down) { lose(down.source); });
}

caf::result<caf::ok_atom> Directory::take_sign(
    void (Members::*event)(TaskIndex, Incarnation)) {
  const auto found =
      by_actor_.find(caf::actor_cast<caf::actor_addr>(current_sender()));
  if (found == by_actor_.end()) return answer(not_a_member());
  (members_.*event)(found->second, known_.at(found->second).incarnation);
  return caf::ok_atom_v;
}

Directory::behavior_type Directory::make_behavior() {
  return {
      [this](caf::close_atom) {
        return leave_when_asked(options_.on_asked_to_leave);
      },
      [this](caf::join_atom, const std::string& bytes) {
        return answer(guarded("directory", [&] { return join(bytes); }));
      },
      [this](caf::leave_atom) { return take_sign(&Members::on_drain); },
      [this](caf::ping_atom) { return take_sign(&Members::on_heard); },
      [this](caf::get_atom) {
        return answer(guarded("directory", [&] { return catalogue_bytes(); }));
      },
      [this](caf::get_atom, const std::string& task) { return load_of(task); },
      [this](caf::put_atom, const std::string& bytes) {
        if (auto own = parse_control<CatalogueEntry>(bytes); own.ok())
          own_ = std::move(*own);
      },
      [this](caf::tick_atom, uint64_t number) {
        if (!ticks_.take(number)) return;
        Members::Actions actions;
        members_.on_time(std::chrono::steady_clock::now(), actions);
        perform(actions);
        plan_tick();
      }};
}

Status Directory::join(const std::string& bytes) {
  const auto actor = caf::actor_cast<WorkerActor>(current_sender());
  if (!actor) return invalid_argument("[directory] nobody joins");
  const auto peer = options_.system.find(ControlSystem::hash_of(actor->node()));
  if (!peer) return error(Code::kUnavailable, "[directory] the sender is gone");
  TAGFLOW_ASSIGN(CatalogueEntry entry, parse_control<CatalogueEntry>(bytes));
  const std::string name = entry.task.to_string();
  if (peer->greeting.role != Role::kWorker || peer->greeting.task != entry.task)
    return invalid_argument("[directory] {} joins as {}",
                            peer->greeting.task.to_string(), name);
  if (!own_) return error(Code::kUnavailable, "[directory] it is starting");
  if (entry.task == own_->task)
    return error(Code::kAlreadyExists, "[directory] {} is the directory itself",
                 name);
  if (entry.host.empty()) entry.host = peer->host;
  TAGFLOW_RETURN_IF_ERROR(control_bytes_of(catalogue(&entry)).status());
  TAGFLOW_ASSIGN(const TaskIndex index, index_of(name));
  const auto address = caf::actor_cast<caf::actor_addr>(actor);
  if (const auto found = by_actor_.find(address);
      found != by_actor_.end() && found->second == index) {
    known_.at(index).entry = std::move(entry);
    return {};
  }
  const Incarnation incarnation{peer->greeting.incarnation};
  TAGFLOW_RETURN_IF_ERROR(members_.on_hello({index, incarnation, ""},
                                            std::chrono::steady_clock::now()));
  members_.on_ready(index, incarnation);
  known_.insert_or_assign(
      index, Known{std::move(entry), actor, incarnation, peer->id});
  by_actor_.insert_or_assign(address, index);
  monitor(actor);
  plan_tick();
  return {};
}

Result<TaskIndex> Directory::index_of(const std::string& task) {
  if (const auto found = indices_.find(task); found != indices_.end())
    return found->second;
  if (indices_.size() >= kMostTasks)
    return error(Code::kResourceExhausted,
                 "[directory] the cluster has had {} tasks", kMostTasks);
  const TaskIndex index = members_.add(task);
  indices_.emplace(task, index);
  return index;
}

Catalogue Directory::catalogue(const CatalogueEntry* entry) const {
  Catalogue all;
  if (entry != nullptr) all.members.push_back(*entry);
  for (const auto& [index, known] : known_)
    if (entry == nullptr || known.entry.task != entry->task)
      all.members.push_back(known.entry);
  std::ranges::sort(all.members, {}, [](const CatalogueEntry& member) {
    return std::tie(member.task.job, member.task.index);
  });
  all.members.insert(all.members.begin(), *own_);
  return all;
}

Result<std::string> Directory::catalogue_bytes() const {
  if (!own_) return error(Code::kUnavailable, "[directory] it is starting");
  return control_bytes_of(catalogue());
}

caf::result<std::string> Directory::load_of(const std::string& task) {
  if (own_ && own_->task.to_string() == task)
    return answer(guarded("directory",
                          [&] { return control_bytes_of(options_.load()); }));
  const auto index = indices_.find(task);
  const auto found =
      index == indices_.end() ? known_.end() : known_.find(index->second);
  if (found == known_.end())
    return to_caf(error(Code::kNotFound, "[directory] {} is not a member",
                        task.substr(0, Greeting::kLongestJob)));
  auto promise = make_response_promise<std::string>();
  request(found->second.actor, kAnswerTime, caf::get_atom_v)
      .then(
          [promise](std::string& bytes) mutable {
            promise.deliver(std::move(bytes));
          },
          [promise](caf::error& failure) mutable {
            promise.deliver(std::move(failure));
          });
  return promise;
}

void Directory::lose(const caf::actor_addr& actor) {
  const auto found = by_actor_.find(actor);
  if (found == by_actor_.end()) return;
  Members::Actions actions;
  members_.on_lost(found->second, known_.at(found->second).incarnation,
                   error(Code::kUnavailable, "its connection has ended"),
                   actions);
  perform(actions);
}

void Directory::perform(Members::Actions& actions) {
  for (const Members::Action& action : actions) {
    // Members ping by themselves.
    const auto* lost = std::get_if<Members::Lost>(&action);
    if (lost == nullptr) continue;
    const auto known = known_.extract(lost->task);
    if (known.empty()) continue;
    const auto address = caf::actor_cast<caf::actor_addr>(known.mapped().actor);
    by_actor_.erase(address);
    demonitor(address);
    options_.system.cut(known.mapped().connection);
    options_.on_warning(std::string(lost->reason.message()));
  }
}

void Directory::plan_tick() {
  const Time next = members_.next();
  if (const auto number = ticks_.plan(next))
    delayed_send(this, next - std::chrono::steady_clock::now(),
                 caf::tick_atom_v, *number);
}

}  // namespace tagflow::net
