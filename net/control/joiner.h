// Joiner: the actor of a worker that joins a directory.
#pragma once

#include <caf/typed_event_based_actor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "net/control/actors.h"
#include "net/control/annotated.h"
#include "net/control/control_system.h"
#include "net/control/ticks.h"
#include "net/link/listener.h"
#include "net/link/retries.h"
#include "net/protocol/membership.h"
#include "net/transfer/pairing.h"
#include "net/wire/control.h"

namespace tagflow::net {

// What its own process tells it, too.
using JoinerBase = WorkerActor::extend<
    // The CatalogueEntry of this process. It joins when it has one.
    caf::reacts_to<caf::put_atom, std::string>,
    // This process leaves the cluster: its end is no loss.
    caf::reacts_to<caf::leave_atom>, caf::reacts_to<caf::tick_atom, uint64_t>,
    // A connection of the attempt with this incarnation, or why there is none.
    caf::reacts_to<caf::connect_atom, uint64_t, int64_t, caf::io::scribe_ptr>,
    caf::reacts_to<caf::connect_atom, uint64_t, caf::error>>;

// A member of the cluster while the directory lives: see Membership. What it
// has to do for a master does not end with its membership.
class Joiner final : public Annotated<JoinerBase::base> {
 public:
  struct Options {
    ControlSystem& system;
    IoThread& thread;   // that connects
    Identity identity;  // but for its incarnation, which each attempt draws
    Address any;        // of any member of the cluster
    std::function<Load()> load;
    std::function<void(const std::string&)> on_warning;
    std::function<void()> on_joined;
    std::function<void(const Status&)> on_refused;  // for good
    std::function<void()> on_asked_to_leave;        // may be empty
  };
  Joiner(caf::actor_config& config, Options options);

  behavior_type make_behavior() override;
  void on_exit() override;
  const char* name() const override { return "tagflow.joiner"; }

 private:
  // Calls a step, and does what the machine wants then. An error ends the
  // attempt.
  template <class F>
  void step(uint64_t attempt, F&& f);
  bool is_current(uint64_t attempt) const {
    return machine_ && Incarnation{attempt} == machine_->incarnation();
  }
  // Ends the attempt, or the membership.
  void fail(uint64_t attempt, const Status& status);
  void perform();
  void connect(const Address& to);
  void on_connection(uint64_t attempt, ControlSystem::ConnectionId id,
                     caf::io::scribe_ptr scribe);
  void on_peer(uint64_t attempt, const caf::strong_actor_ptr& peer,
               const std::set<std::string>& types);
  void follow(uint64_t attempt, const WorkerActor& worker);
  void join(uint64_t attempt);
  // Tells the directory that the end of this process is no loss.
  void tell_leaving();
  void leave(const Status& reason);
  void ping();

  const Options options_;
  std::string entry_;  // the bytes of a CatalogueEntry; empty: none yet
  std::optional<Membership> machine_;
  Membership::Actions actions_;
  Ticks ticks_;
  // Of the present attempt.
  std::unique_ptr<Connector> connector_;
  Address target_;
  ControlSystem::ConnectionId connection_{};
  int hops_ = 0;
  DirectoryActor directory_;

  Address directory_at_;  // where it is, or was
  bool asks_any_ = true;
  bool is_leaving_ = false;
  Retries retries_;     // since it was a member
  std::string warned_;  // the last warning, since it was a member
};

}  // namespace tagflow::net
