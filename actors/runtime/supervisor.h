// Supervisor: the actor that looks after the others.
#pragma once

#include <caf/actor.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "actors/runtime/annotated_actor.h"

namespace tagflow::actors {

using Warn = std::function<void(const std::string&)>;

// Tells the supervisor of one more actor to look after.
struct Adopt {
  caf::actor actor;
};

// And of some that it need not look after any more.
struct Dismiss {
  std::vector<caf::actor> actors;
};

// Looks after partitions, rendezvous and devices: stops them with the engine,
// or when they are dismissed, and says so where one ends by itself, which it
// never should.
class Supervisor : public AnnotatedActor {
 public:
  Supervisor(caf::actor_config& config, const Warn& warn)
      : AnnotatedActor(config), warn_(warn) {}

  caf::behavior make_behavior() override;

 private:
  void adopt(const caf::actor& actor);
  void dismiss(std::vector<caf::actor>& actors);
  // What is left of the list are those for which memory was short.
  void stop_all(std::vector<caf::actor>& actors);
  // Memory may be short for a moment. False where it stays so: the ward must
  // live on, since its end without a Stop needs more.
  bool stop(const caf::actor& ward);

  const Warn warn_;
  std::set<caf::actor> wards_;
  // Dismissed, but not stopped yet. Each dismissal tries again.
  std::vector<caf::actor> left_;
};

}  // namespace tagflow::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Adopt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Dismiss)
