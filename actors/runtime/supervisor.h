// Supervisor: the actor that supervises all others.
#pragma once

#include <caf/actor.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "actors/runtime/annotated_actor.h"

namespace tagflow::actors {

using Warn = std::function<void(const std::string&)>;

// Asks the supervisor to supervise one more actor.
struct Adopt {
  caf::actor actor;
};

// Asks it to stop actors, and to supervise them no longer.
struct Dismiss {
  std::vector<caf::actor> actors;
};

// Supervises partitions, rendezvous and devices: stops them when the engine
// ends or when they are dismissed, and warns if one ends by itself, which is a
// bug.
class Supervisor : public AnnotatedActor {
 public:
  Supervisor(caf::actor_config& config, const Warn& warn)
      : AnnotatedActor(config), warn_(warn) {}

  caf::behavior make_behavior() override;

 private:
  void adopt(const caf::actor& actor);
  void dismiss(std::vector<caf::actor>& actors);
  // Actors that could not be stopped for lack of memory remain in the list.
  void stop_all(std::vector<caf::actor>& actors);
  // Retries, since memory may be short for a moment only. False if the lack of
  // memory persists: then the ward must stay alive, since its end without a
  // Stop needs more memory.
  bool stop(const caf::actor& ward);

  const Warn warn_;
  std::set<caf::actor> wards_;
  // Dismissed, but not stopped yet. Each dismissal tries again.
  std::vector<caf::actor> left_;
};

}  // namespace tagflow::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Adopt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Dismiss)
