// The actors of the control plane, as their peers see them.
//
// What they say is bytes of net/wire/control.h, so that the lengths of all
// texts and lists are checked by one reader, and no type of ours must be known
// to CAF.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "graph/status.h"
#include "net/link/silence.h"

namespace tagflow::net {

// For an answer of one actor.
inline constexpr std::chrono::milliseconds kAnswerTime{2000 * kSlowness};

// Any worker.
using MemberActor = caf::typed_actor<
    // It is to leave the cluster, and does so when its steps are over.
    caf::replies_to<caf::close_atom>::with<caf::ok_atom>>;

// A worker that is not the directory. It publishes this to whoever connects.
using WorkerActor = MemberActor::extend<
    // The host and the port of the directory.
    caf::replies_to<caf::redirect_atom>::with<std::string, uint16_t>,
    // Its Load.
    caf::replies_to<caf::get_atom>::with<std::string>>;

// The worker that knows the cluster.
using DirectoryActor = MemberActor::extend<
    // The sender, a WorkerActor, is a member from then on, with this
    // CatalogueEntry; or its entry is another one now.
    caf::replies_to<caf::join_atom, std::string>::with<caf::ok_atom>,
    // The sender, a member, leaves the cluster: its end is no loss.
    caf::replies_to<caf::leave_atom>::with<caf::ok_atom>,
    // A sign of life of a member.
    caf::replies_to<caf::ping_atom>::with<caf::ok_atom>,
    // The Catalogue.
    caf::replies_to<caf::get_atom>::with<std::string>,
    // The Load of the member whose task has this name.
    caf::replies_to<caf::get_atom, std::string>::with<std::string>>;

// The answer of a MemberActor to who asks it to leave; null: nobody is told.
caf::result<caf::ok_atom> leave_when_asked(const std::function<void()>& ask);

// Whether what was found by these types can be asked as an Actor.
template <class Actor>
bool is_a(const caf::actor_system& system, const std::set<std::string>& types) {
  return system.assignable(
      types, system.message_types(caf::detail::type_list<Actor>()));
}

// Has an actor live on, whatever peers send it: what it does not know, errors
// that nobody waits for, and orders to end, which only its own process gives.
void harden(caf::scheduled_actor& actor);

// An error for a peer, and back. Errors of CAF itself are DeadlineExceeded for
// an answer that does not come, and Unavailable. REQUIRES: !status.ok()
caf::error to_caf(const Status& status);
Status from_caf(const caf::actor_system& system, const caf::error& failure);

}  // namespace tagflow::net
