// Actors under CAF's deterministic scheduler: only the test runs them.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <functional>
#include <vector>

#include "actors/runtime/engine_actor.h"

namespace tagflow::actors {

struct StepwiseSystem {
  struct Config : caf::actor_system_config {
    Config() { set("scheduler.policy", caf::atom("testing")); }
  };
  Config config;
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
};

// Keeps what it is sent, in a system of its own. It does not own the batches.
class Receiver {
 public:
  Receiver() = default;
  ~Receiver() {
    caf::anon_send(handle_, Stop{});
    run();
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  caf::actor_system& system() { return stepwise_.system; }
  EngineActor* actor() { return actor_pointer<Actor>(handle_); }
  // Runs all actors; returns what has come until now.
  const std::vector<Batch*>& run() {
    stepwise_.scheduler.run();
    return received_;
  }

 private:
  class Actor : public EngineActor {
   public:
    Actor(caf::actor_config& config, std::vector<Batch*>& received)
        : EngineActor(config, HandOff::kDirect), received_(received) {}

   protected:
    void on_batch(Batch* batch, Runner&) override {
      received_.push_back(batch);
    }

   private:
    std::vector<Batch*>& received_;
  };

  std::vector<Batch*> received_;
  StepwiseSystem stepwise_;
  caf::actor handle_ =
      stepwise_.system.spawn<Actor, caf::lazy_init>(std::ref(received_));
};

}  // namespace tagflow::actors
