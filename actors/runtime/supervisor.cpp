#include "actors/runtime/supervisor.h"

#include <fmt/format.h>

#include <caf/send.hpp>

#include "actors/runtime/engine_actor.h"
#include "graph/fault.h"

namespace tagflow::actors {

caf::behavior Supervisor::make_behavior() {
  set_down_handler([this](caf::down_msg& down) {
    (void)guarded([&] {
      warn_(fmt::format(
          "[engine] an actor ended unexpectedly: {}",
          down.reason ? caf::to_string(down.reason) : "something was thrown"));
    });
  });
  set_exception_handler(without_reason);
  return {[this](Adopt& message) { adopt(message.actor); },
          [this](Dismiss& message) { dismiss(message.actors); },
          [this](Stop&) {
            stop_all(left_);
            for (const caf::actor& ward : wards_) stop(ward);
            wards_.clear();
            quit();
          }};
}

// If memory is short, the actor is stopped only when it is dismissed. Only kept
// actors are monitored: the release of the last reference to a monitored actor
// needs memory, to report its end.
void Supervisor::adopt(const caf::actor& actor) {
  (void)guarded([&] {
    wards_.insert(actor);
    monitor(actor);
  });
}

void Supervisor::dismiss(std::vector<caf::actor>& actors) {
  stop_all(left_);
  stop_all(actors);
  if (left_.empty()) {
    left_.swap(actors);
  } else {
    (void)guarded(
        [&] { left_.insert(left_.end(), actors.begin(), actors.end()); });
  }
}

void Supervisor::stop_all(std::vector<caf::actor>& actors) {
  std::erase_if(actors, [&](const caf::actor& ward) {
    if (!stop(ward)) return false;
    wards_.erase(ward);
    return true;
  });
}

bool Supervisor::stop(const caf::actor& ward) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    const Status sent = guarded([&] {
      demonitor(ward);
      send(ward, Stop{});
    });
    if (sent.ok()) return true;
  }
  return false;
}

}  // namespace tagflow::actors
