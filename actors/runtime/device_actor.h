// DeviceActor and its lanes: they run kernels that are worth a hop.
#pragma once

#include <caf/actor.hpp>
#include <optional>
#include <vector>

#include "actors/runtime/engine_actor.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/kernel_request.h"

namespace tagflow::actors {

// Runs one kernel at a time, on the worker that resumes it. An exception of the
// kernel or an observer becomes the answer's status.
class LaneActor : public EngineActor {
 public:
  LaneActor(caf::actor_config& config, HandOff policy, EngineActor& device);

 protected:
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  // None if the request must be parked.
  std::optional<Status> compute(KernelRequest& request, Runner& runner);

  EngineActor* device_;
  Batch idle_;  // with the device while the lane is free, else the lane's
};

// A device whose kernels run on the workers. It gives each request to a free
// lane, or queues it. There is one lane per worker. Each run has a queue of its
// own, and runs take turns; urgent ones go first. A queue allocates nothing.
//
// Life cycle: spawned with its lanes for a set of devices; serves all runs on
// the device; stopped with the set, and stops its lanes.
class DeviceActor : public EngineActor {
 public:
  DeviceActor(caf::actor_config& config, HandOff policy, int lanes);

 protected:
  // kKernel: a request. kIdle: a lane is free again.
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  // The runs with waiting requests, in the order of their turns.
  struct Ring {
    void push_front(StepQueue& queue);
    void push_back(StepQueue& queue);
    void pop_front();
    StepQueue* first = nullptr;
    StepQueue* last = nullptr;
  };

  void admit(Batch* batch);
  // Null if nothing waits.
  Batch* take_next();
  void dispatch(Runner& runner);

  std::vector<caf::actor> handles_;
  std::vector<LaneActor*> idle_;
  Ring normal_, urgent_;
  UrgentFirst order_;
};

}  // namespace tagflow::actors
