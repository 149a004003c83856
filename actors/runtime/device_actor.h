// DeviceActor and its lanes: where kernels worth more than a hop run.
#pragma once

#include <caf/actor.hpp>
#include <optional>
#include <vector>

#include "actors/runtime/engine_actor.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/kernel_request.h"

namespace tagflow::actors {

// Runs one kernel at a time, on whichever worker resumes it. What the kernel
// or an observer throws is the answer's status.
class LaneActor : public EngineActor {
 public:
  LaneActor(caf::actor_config& config, HandOff policy, EngineActor& device);

 protected:
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  // None where it has to be parked.
  std::optional<Status> compute(KernelRequest& request, Runner& runner);

  EngineActor* device_;
  Batch idle_;  // with the device, or the lane's while it has no work
};

// A device whose kernels run on the workers. Admits requests: gives each to a
// free lane, or lets it wait for one. There is a lane per worker. What waits is
// in one queue per run, and runs take turns; urgent ones go first. To wait
// takes no memory.
//
// Life cycle: spawned with its lanes for a set of devices; serves all runs on
// it; stopped with the set, and stops its lanes.
class DeviceActor : public EngineActor {
 public:
  DeviceActor(caf::actor_config& config, HandOff policy, int lanes);

 protected:
  // kKernel: a request. kIdle: a lane is free again.
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  // The runs of which something waits, in the order of their turns.
  struct Ring {
    void push_front(StepTurn& turn);
    void push_back(StepTurn& turn);
    void pop_front();
    StepTurn* first = nullptr;
    StepTurn* last = nullptr;
  };

  void admit(Batch* batch);
  // Null where nothing waits.
  Batch* take_next();
  void dispatch(Runner& runner);

  std::vector<caf::actor> handles_;
  std::vector<LaneActor*> idle_;
  Ring normal_, urgent_;
  UrgentFirst order_;
};

}  // namespace tagflow::actors
