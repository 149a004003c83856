// Membership, the master's messages, and the links to peers.
#include "tests/net/protocol/sim_worker.h"

#include <algorithm>
#include <utility>

namespace tagflow::net::simulated {

Worker::Worker(World& world, Ledger& ledger, TaskIndex task, size_t master,
               Sizes sizes)
    : world_(world),
      ledger_(ledger),
      task_(task),
      host_(size_t(task)),
      masters_{master},
      sizes_(sizes) {}

void Worker::start() {
  world_.start(host_, this);
  membership_.emplace(world_.now());
  reign_ = std::make_shared<Reign>();
  first_incarnation_ = Incarnation::kNone;
  armed_ = kNever;
  departure_ = {};
  on_left_ = {};
  has_left_ = false;
  tick();
}

void Worker::drain(std::function<void()> on_left) {
  if (departure_.has_begun()) return;
  on_left_ = std::move(on_left);
  if (departure_.begin(reign_->master != 0)) tell_master(reign_, Drain{});
  if (world_.is_planted(Planted::kLeavesByItself) && reign_->locals.empty())
    check(departure_.on_agreed());
  leave_if_free();
}

void Worker::leave_if_free() {
  if (!departure_.is_free() || std::exchange(has_left_, true)) return;
  on_left_();
}

// --- Membership ---

void Worker::tick() {
  Membership::Actions actions;
  uint64_t random = world_.random().next();
  if (world_.is_planted(Planted::kSameIncarnation) &&
      first_incarnation_ != Incarnation::kNone)
    random = uint64_t(first_incarnation_);
  membership_->on_time(world_.now(), random, actions);
  perform(actions);
  arm();
}

void Worker::arm() {
  const Time next = membership_->next();
  if (next == kNever || next == armed_) return;
  armed_ = next;
  world_.local(host_, next - world_.now(), [this, next] {
    if (armed_ != next) return;
    armed_ = kNever;
    tick();
  });
}

void Worker::perform(const Membership::Actions& actions) {
  for (const Membership::Action& action : actions)
    std::visit(
        Cases{[&](const Membership::Join& join) {
                reign_->incarnation = join.incarnation;
                first_incarnation_ = join.incarnation;
                const size_t master = masters_[num_joins_++ % masters_.size()];
                reign_->master = world_.connect(host_, master);
                tell_master(reign_,
                            Members::Hello{task_, join.incarnation, "build"});
              },
              [&](const Membership::Clear& cleared) {
                clear(cleared.incarnation, cleared.reason);
              },
              [&](const Membership::Ping&) { tell_master(reign_, Ping{}); },
              [&](const Membership::GiveUp& given_up) {
                world_.violation("a worker gives up: " +
                                 given_up.reason.to_string());
              }},
        action);
}

void Worker::clear(Incarnation incarnation, const Status& reason) {
  // Without a master it is free.
  if (departure_.has_begun() && !std::exchange(has_left_, true)) on_left_();
  if (world_.is_planted(Planted::kStepsSurvive)) {
    world_.close(reign_->master, host_);
    return;
  }
  const ReignPtr old = std::exchange(reign_, std::make_shared<Reign>());
  if (old->incarnation != incarnation)
    world_.violation("an incarnation is cleared that is not the present one");
  if (world_.is_planted(Planted::kSecondMaster))
    reign_->old_master = old->master;
  else
    world_.close(old->master, host_);
  for (auto& [peer, session] : old->sessions) world_.close(session.link, host_);
  // They may still commit what is in their gates.
  for (auto& [step, local] : std::exchange(old->locals, {})) {
    local->is_over = true;
    if (local->error.ok()) local->error = reason;
  }
}

// --- The master's messages ---

void Worker::tell_master(const ReignPtr& reign, Message message) {
  if (reign->master != 0) world_.send(reign->master, host_, std::move(message));
}

void Worker::on_master(Message message) {
  membership_->on_heard(reign_->incarnation);
  WorkerSteps::Actions actions;
  std::visit(Cases{[&](Verdict& verdict) {
                     if (verdict.status.ok()) {
                       membership_->on_accepted(verdict.incarnation,
                                                world_.now());
                       tell_master(reign_, Ready{});
                       return;
                     }
                     Membership::Actions members;
                     membership_->on_refused(verdict.incarnation,
                                             verdict.status, world_.now(),
                                             world_.random().next(), members);
                     perform(members);
                   },
                   [&](Ping&) { tell_master(reign_, Pong{}); },
                   [&](Drain&) {
                     if (world_.is_planted(Planted::kLeavesByItself)) return;
                     if (check(departure_.on_agreed())) leave_if_free();
                   },
                   [&](Run& run) { on_run(std::move(run)); },
                   [&](Abort& abort) {
                     const LocalPtr local = find(abort.step);
                     reign_->steps.on_abort(abort.step, abort.status, actions);
                     if (world_.is_planted(Planted::kDoneTwice) &&
                         local != nullptr && actions.empty())
                       actions.push_back(
                           WorkerSteps::TellDone{abort.step, {abort.status}});
                     perform(reign_, actions);
                   },
                   [&](Ask& ask) {
                     const LocalPtr local = find(ask.step);
                     if (local == nullptr) return;
                     report(reign_, local, ask.round);
                     local->quiet.on_asked();
                   },
                   [](auto&) {}},
             message);
  arm();
}

void Worker::on_run(Run run) {
  const auto pairs = run.script->pairs();
  const size_t index = run.index;
  for (auto [one, other] : pairs) {
    if (one != index && other != index) continue;
    need_session(run.parts[one == index ? other : one]);
  }
  if (reign_->session == 0) reign_->session = run.session;
  if (reign_->session != run.session)
    world_.violation("a worker serves two masters");
  const StepId step = run.step;
  reign_->runs[step] = std::move(run);
  WorkerSteps::Actions actions;
  if (!check(reign_->steps.on_run(step, actions))) return;
  perform(reign_, actions);
}

void Worker::perform(const ReignPtr& reign,
                     const WorkerSteps::Actions& actions) {
  for (const WorkerSteps::Action& action : actions)
    std::visit(Cases{[&](const WorkerSteps::Start& start) {
                       start_local(reign, start.step);
                     },
                     [&](const WorkerSteps::Fail& fail) {
                       const auto place = reign->locals.find(fail.step);
                       if (place != reign->locals.end())
                         fail_local(reign, LocalPtr(place->second), fail.cause);
                     },
                     [&](const WorkerSteps::Drop& dropped) {
                       drop(*reign, dropped.step);
                     },
                     [&](const WorkerSteps::TellFailed& failed) {
                       tell_master(reign, Abort{failed.step, failed.status});
                     },
                     [&](const WorkerSteps::TellDone& told) {
                       Done done{told.step, told.done, {}, 0};
                       const auto place = reign->locals.find(told.step);
                       if (place != reign->locals.end()) {
                         const Local& local = *place->second;
                         if (!world_.is_planted(Planted::kOverUncounted))
                           done.counts = local.counts;
                         for (const Lane& lane : local.lanes)
                           done.value += lane.value;
                         done.fetched = local.fetched;
                         reign->locals.erase(place);
                       }
                       if (world_.is_planted(Planted::kConsequenceWins))
                         done.done.is_cause = true;
                       if (world_.is_planted(Planted::kCommitsUntold))
                         done.done.has_committed = false;
                       tell_master(reign, std::move(done));
                     }},
               action);
}

void Worker::report(const ReignPtr& reign, const LocalPtr& local,
                    uint32_t round) {
  tell_master(reign, Report{local->run.step,
                            {round, local->quiet.is_quiet(), local->counts}});
}

// --- Links ---

void Worker::on_message(LinkId link, Message message) {
  if (link == reign_->master || (link == reign_->old_master && link != 0))
    return on_master(std::move(message));
  for (auto& [peer, session] : reign_->sessions)
    if (session.link == link) return on_peer(peer, std::move(message));
  if (const auto* hello = std::get_if<PeerHello>(&message))
    on_peer_hello(link, *hello);
}

void Worker::on_closed(LinkId link) {
  if (link == reign_->master) {
    Membership::Actions actions;
    membership_->on_lost(reign_->incarnation,
                         error(Code::kUnavailable, "the link has ended"),
                         world_.now(), world_.random().next(), actions);
    perform(actions);
    arm();
    return;
  }
  for (auto& [peer, session] : reign_->sessions)
    if (session.link == link) return lose_session(Incarnation(peer));
}

void Worker::need_session(const MasterStep::Part& peer) {
  const Incarnation incarnation = peer.incarnation;
  if (reign_->sessions.contains(incarnation)) return;
  if (task_ > peer.task) return;  // it connects
  const LinkId link = world_.connect(host_, size_t(peer.task));
  add_session(incarnation, peer.task, link, false);
  world_.send(link, host_, PeerHello{task_, reign_->incarnation, incarnation});
  world_.local(host_, seconds(2), [this, incarnation, link, reign = reign_] {
    const auto place = reign->sessions.find(incarnation);
    if (reign == reign_ && place != reign->sessions.end() &&
        place->second.link == link && !place->second.is_up)
      lose_session(incarnation);
  });
}

void Worker::on_peer_hello(LinkId link, const PeerHello& hello) {
  if (reign_->incarnation != hello.to_incarnation)
    return world_.close(link, host_);
  const Incarnation peer = hello.from_incarnation;
  if (reign_->sessions.contains(peer)) lose_session(peer);
  add_session(peer, hello.from, link, true);
  world_.send(link, host_, PeerAccept{});
  on_session_up(peer);
}

void Worker::add_session(Incarnation peer, TaskIndex task, LinkId link,
                         bool is_up) {
  reign_->sessions.emplace(peer, Session{link, task, SendWindow(sizes_.window),
                                         ReceiveWindow(sizes_.window),
                                         Life(world_.now(), {}), is_up});
  watch(peer, link);
}

void Worker::on_session_up(Incarnation peer) {
  reign_->sessions.at(peer).is_up = true;
  const ReignPtr reign = reign_;
  if (const auto owed = reign->credit_of_old_session.extract(peer))
    world_.send(reign->sessions.at(peer).link, host_, Credit{owed.mapped()});
  for (const Unsent& unsent : std::exchange(reign->unsent[peer], {})) {
    const LocalPtr local = find(unsent.step);
    if (local == nullptr || !local->error.ok()) continue;
    --local->num_unsent;
    if (transmit(*reign, *local, peer, unsent.key, unsent.held))
      unhold(reign, local, unsent.held.lane);
    settle(reign, local);
  }
}

void Worker::lose_session(Incarnation peer) {
  auto node = reign_->sessions.extract(peer);
  world_.close(node.mapped().link, host_);
  if (world_.is_planted(Planted::kPairLossByParts) && reign_->locals.empty())
    return;
  tell_master(reign_, PairLost{node.mapped().task, peer});
}

void Worker::watch(Incarnation peer, LinkId link) {
  const auto place = reign_->sessions.find(peer);
  if (place == reign_->sessions.end() || place->second.link != link) return;
  Session& session = place->second;
  if (session.is_up) {
    switch (session.life.on_time(world_.now())) {
      case Life::Verdict::kNothing:
        break;
      case Life::Verdict::kPing:
        world_.send(link, host_, Ping{});
        break;
      case Life::Verdict::kLost:
        return lose_session(peer);
    }
  }
  const Time next =
      session.is_up ? session.life.next() : world_.now() + milliseconds(300);
  world_.local(host_, next - world_.now(),
               [this, peer, link] { watch(peer, link); });
}

void Worker::on_peer(Incarnation peer, Message message) {
  Session& session = reign_->sessions.at(peer);
  session.life.on_heard();
  std::visit(Cases{[&](PeerAccept&) { on_session_up(peer); },
                   [&](Ping&) { world_.send(session.link, host_, Pong{}); },
                   [&](SmallToken& token) {
                     on_small_token(peer, session, std::move(token));
                   },
                   [&](Announcement& announced) { on_announcement(announced); },
                   [&](Pull& pull) { on_pull(session, pull); },
                   [&](Object& object) { on_object(object); },
                   [&](Credit& credit) {
                     check(session.send.on_credit(credit.bytes));
                   },
                   [](auto&) {}},
             message);
}

void Worker::on_small_token(Incarnation peer, Session& session,
                            SmallToken message) {
  if (!check(session.receive.on_token(message.token.bytes))) return;
  const ReignPtr reign = reign_;
  const Arrived arrived{message.token, peer, session.link};
  WorkerSteps::Fate fate = reign->steps.fate_of(message.step);
  if (world_.is_planted(Planted::kEarlyDropped) &&
      fate == WorkerSteps::Fate::kKeep)
    fate = WorkerSteps::Fate::kDrop;
  if (world_.is_planted(Planted::kEarlyIfLast) &&
      fate == WorkerSteps::Fate::kDrop &&
      message.step == reign->steps.last_run() && find(message.step) == nullptr)
    fate = WorkerSteps::Fate::kKeep;
  switch (fate) {
    case WorkerSteps::Fate::kKeep:
      reign->kept[message.step].push_back({message.key, arrived});
      if (world_.is_planted(Planted::kCreditTwice))
        world_.send(session.link, host_,
                    Credit{charge_of(message.token.bytes)});
      break;
    case WorkerSteps::Fate::kDeliver:
      accept(reign, find(message.step), {message.key, arrived});
      break;
    case WorkerSteps::Fate::kDrop:
      if (!world_.is_planted(Planted::kCreditLostIfDead))
        give_credit(*reign, arrived);
      break;
  }
  check_memory(session);
}

void Worker::on_announcement(const Announcement& message) {
  switch (reign_->steps.fate_of(message.step)) {
    case WorkerSteps::Fate::kKeep:
      reign_->kept[message.step].push_back({message.key, {}});
      break;
    case WorkerSteps::Fate::kDeliver:
      accept(reign_, find(message.step), {message.key, {}});
      break;
    case WorkerSteps::Fate::kDrop:
      break;
  }
}

void Worker::on_pull(Session& session, const Pull& pull) {
  const ReignPtr reign = reign_;
  const LocalPtr local = find(pull.step);
  if (local == nullptr) return;
  ++local->counts.received;
  const std::optional<Held> held = local->outbox.on_pull(pull.key);
  if (!held) return;
  if (world_.is_planted(Planted::kPullNeedsWindow) &&
      !session.send.take(held->token.bytes, sizes_.window))
    return;
  if (!world_.is_planted(Planted::kObjectsUncounted)) ++local->counts.sent;
  world_.send(session.link, host_, Object{pull.object, held->token},
              Channel::kBulk);
  unhold(reign, local, held->lane);
  settle(reign, local);
}

void Worker::on_object(const Object& object) {
  const ReignPtr reign = reign_;
  const auto node = reign->objects.extract(object.object);
  if (!node) return world_.violation("an object comes that was not pulled");
  const auto [step, key] = node.mapped();
  const LocalPtr local = find(step);
  if (local == nullptr || !local->error.ok()) return;
  if (!world_.is_planted(Planted::kObjectsUncounted)) ++local->counts.received;
  const Result<size_t> lane = local->inbox.on_object(key);
  if (check(lane.status())) take(reign, local, *lane, object.token);
}

void Worker::give_credit(Reign& reign, const Arrived& arrived) {
  const auto place = reign.sessions.find(arrived.peer);
  if (place == reign.sessions.end()) {
    if (world_.is_planted(Planted::kCreditOfOldSession))
      reign.credit_of_old_session[arrived.peer] +=
          charge_of(arrived.token.bytes);
    return;
  }
  Session& session = place->second;
  if (session.link != arrived.link) return;
  if (const uint64_t credit = session.receive.on_consumed(arrived.token.bytes))
    world_.send(session.link, host_, Credit{credit});
}

void Worker::check_memory(const Session& session) {
  if (session.receive.unconsumed() > sizes_.window)
    world_.violation("more is kept than the window allows");
}

std::string Worker::leftovers() const {
  if (!reign_->locals.empty()) return "a part is not over";
  for (const auto& [step, kept] : reign_->kept)
    if (!kept.empty()) return "tokens are kept for a step that is over";
  if (!reign_->objects.empty()) {
    for (const auto& [object, what] : reign_->objects)
      if (reign_->locals.contains(what.first)) return "an object is missing";
  }
  return "";
}

std::string Worker::balance(const Worker& from, const Worker& to) {
  const auto out = from.reign_->sessions.find(to.reign_->incarnation);
  const auto in = to.reign_->sessions.find(from.reign_->incarnation);
  if (out == from.reign_->sessions.end() || in == to.reign_->sessions.end() ||
      out->second.link != in->second.link || !out->second.is_up)
    return "";
  const ReceiveWindow& receive = in->second.receive;
  if (receive.unconsumed() != 0) return "a token is neither taken nor dropped";
  if (out->second.send.available() + receive.owed() != from.sizes_.window)
    return "credit is lost or doubled";
  return "";
}

Worker::LocalPtr Worker::find(StepId step) const {
  const auto place = reign_->locals.find(step);
  return place == reign_->locals.end() ? nullptr : place->second;
}

bool Worker::check(const Status& status) {
  if (!status.ok())
    world_.violation("a protocol is broken: " + status.to_string());
  return status.ok();
}

}  // namespace tagflow::net::simulated
