#include "net/control/joiner.h"

#include <caf/actor_cast.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <utility>

#include "graph/fault.h"
#include "net/link/crypto.h"
#include "net/link/silence.h"

namespace tagflow::net {
namespace {

// From a member to the directory, which may have moved meanwhile.
constexpr int kMostHops = 3;

// 1 if the system has no random number.
uint64_t draw_random() {
  const auto number = draw_incarnation();
  return number.ok() ? *number : 1;
}

}  // namespace

Joiner::Joiner(caf::actor_config& config, Options options)
    : Annotated(config),
      options_(std::move(options)),
      directory_at_(options_.any) {
  harden(*this);
  set_down_handler([this](const caf::down_msg& down) {
    if (!directory_ || down.source != directory_.address()) return;
    fail(uint64_t(machine_->incarnation()),
         error(Code::kUnavailable, "[net|control] the directory is lost"));
  });
}

Joiner::behavior_type Joiner::make_behavior() {
  return {
      [this](caf::close_atom) {
        return leave_when_asked(options_.on_asked_to_leave);
      },
      [this](caf::redirect_atom) {
        return std::make_tuple(directory_at_.host, directory_at_.port);
      },
      [this](caf::get_atom) -> caf::result<std::string> {
        auto bytes = guarded("net|control",
                             [&] { return control_bytes_of(options_.load()); });
        if (!bytes.ok()) return to_caf(bytes.status());
        return std::move(*bytes);
      },
      [this](caf::put_atom, const std::string& entry) {
        entry_ = entry;
        const Time now = std::chrono::steady_clock::now();
        if (!machine_)
          machine_.emplace(
              now, LifeRules{LifeSigns().interval, LifeSigns().most_silent});
        const auto attempt = uint64_t(machine_->incarnation());
        if (directory_) step(attempt, [&] { join(attempt); });
        machine_->on_time(now, draw_random(), actions_);
        perform();
      },
      [this](caf::leave_atom) {
        is_leaving_ = true;
        tell_leaving();
      },
      [this](caf::tick_atom, uint64_t number) {
        if (!ticks_.take(number)) return;
        machine_->on_time(std::chrono::steady_clock::now(), draw_random(),
                          actions_);
        perform();
      },
      [this](caf::connect_atom, uint64_t attempt, int64_t id,
             caf::io::scribe_ptr& scribe) {
        step(attempt, [&] {
          on_connection(attempt, ControlSystem::ConnectionId{id},
                        std::move(scribe));
        });
      },
      [this](caf::connect_atom, uint64_t attempt, const caf::error& failure) {
        fail(attempt, from_caf(system(), failure));
      }};
}

void Joiner::on_exit() {
  connector_.reset();
  directory_ = DirectoryActor();
}

template <class F>
void Joiner::step(uint64_t attempt, F&& f) {
  // The attempt may have ended before its answers.
  if (!is_current(attempt)) return;
  if (const Status status = guarded("net|control", std::forward<F>(f));
      !status.ok())
    fail(attempt, status);
}

void Joiner::fail(uint64_t attempt, const Status& status) {
  if (!is_current(attempt)) return;
  const Time now = std::chrono::steady_clock::now();
  if (retries_.may_help(status)) {
    machine_->on_lost(Incarnation{attempt}, status, now, draw_random(),
                      actions_);
  } else {
    // Also of a task that is still taken.
    machine_->on_refused(
        Incarnation{attempt},
        error(Code::kFailedPrecondition, "{}", status.message()), now,
        draw_random(), actions_);
  }
  perform();
}

void Joiner::perform() {
  const Membership::Actions actions = std::exchange(actions_, {});
  for (const Membership::Action& action : actions) {
    if (std::holds_alternative<Membership::Join>(action)) {
      hops_ = 0;
      // By turns: either may be there without the other.
      asks_any_ = !asks_any_;
      step(uint64_t(machine_->incarnation()),
           [&] { connect(asks_any_ ? options_.any : directory_at_); });
    } else if (const auto* clear = std::get_if<Membership::Clear>(&action)) {
      leave(clear->reason);
    } else if (std::holds_alternative<Membership::Ping>(action)) {
      ping();
    } else if (const auto* given_up =
                   std::get_if<Membership::GiveUp>(&action)) {
      options_.on_refused(given_up->reason);
    }
  }
  const Time next = machine_->next();
  if (const auto number = ticks_.plan(next))
    delayed_send(this, next - std::chrono::steady_clock::now(),
                 caf::tick_atom_v, *number);
}

void Joiner::connect(const Address& to) {
  target_ = to;
  Identity identity = options_.identity;
  const auto attempt = uint64_t(machine_->incarnation());
  identity.incarnation = attempt;
  connector_ = std::make_unique<Connector>(
      options_.thread,
      Connector::Options{
          .host = to.host, .port = to.port, .purpose = Purpose::kControl},
      identity,
      [self = JoinerBase(this), attempt, actor = id(),
       &system = options_.system,
       &thread = options_.thread](Result<Connection> connection) {
        auto adopted =
            guarded("net|control", [&]() -> Result<ControlSystem::Adopted> {
              if (!connection.ok()) return connection.status();
              return system.adopt(thread, std::move(*connection),
                                  ControlSystem::Side::kConnector, actor);
            });
        if (!adopted.ok()) {
          caf::anon_send(self, caf::connect_atom_v, attempt,
                         to_caf(adopted.status()));
          return;
        }
        auto [id, scribe] = std::move(*adopted);
        caf::anon_send(self, caf::connect_atom_v, attempt, int64_t(id),
                       std::move(scribe));
      });
}

void Joiner::on_connection(uint64_t attempt, ControlSystem::ConnectionId id,
                           caf::io::scribe_ptr scribe) {
  connector_.reset();
  connection_ = id;
  request(options_.system.broker(), kAnswerTime, caf::connect_atom_v,
          std::move(scribe), uint16_t{0})
      .then(
          [this, attempt](const caf::node_id&, caf::strong_actor_ptr& peer,
                          const std::set<std::string>& types) {
            step(attempt, [&] { on_peer(attempt, peer, types); });
          },
          [this, attempt](const caf::error& failure) {
            fail(attempt, from_caf(system(), failure));
          });
}

void Joiner::on_peer(uint64_t attempt, const caf::strong_actor_ptr& peer,
                     const std::set<std::string>& types) {
  if (is_a<DirectoryActor>(system(), types)) {
    directory_ = caf::actor_cast<DirectoryActor>(peer);
    directory_at_ = target_;
    monitor(directory_);
    return join(attempt);
  }
  if (is_a<WorkerActor>(system(), types))
    return follow(attempt, caf::actor_cast<WorkerActor>(peer));
  fail(attempt, error(Code::kUnavailable, "[net|control] {}:{} is not a worker",
                      target_.host, target_.port));
}

void Joiner::follow(uint64_t attempt, const WorkerActor& worker) {
  request(worker, kAnswerTime, caf::redirect_atom_v)
      .then(
          [this, attempt](const std::string& host, uint16_t port) {
            step(attempt, [&] {
              if (++hops_ > kMostHops)
                return fail(attempt, error(Code::kUnavailable,
                                           "[net|control] the members do not "
                                           "know where the directory is"));
              options_.system.cut(connection_);
              connect({host, port});
            });
          },
          [this, attempt](const caf::error& failure) {
            fail(attempt, from_caf(system(), failure));
          });
}

void Joiner::join(uint64_t attempt) {
  request(directory_, kAnswerTime, caf::join_atom_v, entry_)
      .then(
          [this, attempt](caf::ok_atom) {
            machine_->on_accepted(Incarnation{attempt},
                                  std::chrono::steady_clock::now());
            if (is_current(attempt)) {
              warned_.clear();
              retries_ = {};
              if (options_.on_joined) options_.on_joined();
              tell_leaving();
            }
            perform();
          },
          [this, attempt](const caf::error& failure) {
            fail(attempt, from_caf(system(), failure));
          });
}

void Joiner::tell_leaving() {
  if (!is_leaving_ || !directory_) return;
  // Without an answer, its end is a loss to the directory, and nothing more.
  request(directory_, kAnswerTime, caf::leave_atom_v)
      .then([](caf::ok_atom) {}, [](const caf::error&) {});
}

void Joiner::leave(const Status& reason) {
  connector_.reset();
  if (directory_) demonitor(directory_.address());
  directory_ = DirectoryActor();
  options_.system.cut(std::exchange(connection_, {}));
  if (reason.message() == warned_) return;
  warned_ = reason.message();
  const bool is_away = reason.code() == Code::kUnavailable ||
                       reason.code() == Code::kDeadlineExceeded;
  options_.on_warning(is_away ? warned_ + "; it waits for the directory"
                              : warned_);
}

void Joiner::ping() {
  const Incarnation attempt = machine_->incarnation();
  request(directory_, kAnswerTime, caf::ping_atom_v)
      .then([this, attempt](caf::ok_atom) { machine_->on_heard(attempt); },
            [this, attempt](const caf::error& failure) {
              // Silence is the machine's; other errors are the directory's.
              if (const Status status = from_caf(system(), failure);
                  status.code() != Code::kDeadlineExceeded)
                fail(uint64_t(attempt), status);
            });
}

}  // namespace tagflow::net
