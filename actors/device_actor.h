// DeviceActor and its lanes: where kernels worth more than a hop run.
#pragma once

#include <caf/actor.hpp>
#include <deque>
#include <optional>
#include <vector>

#include "actors/engine_actor.h"
#include "actors/plan.h"

namespace tagflow::actors {

// A kernel to run elsewhere, or a tensor to be copied between the host and an
// accelerator, and the answer: the request travels to the device and comes back
// to the iteration, in the one batch it owns. Reused by its
// iteration actor; allocates nothing once its vectors have grown.
//
// Life cycle: free; filled by its owner, which moves the inputs in; with the
// device, a lane, or an asynchronous kernel; answered; free again.
struct KernelRequest {
  // A copy has one input and one output.
  enum class Work : uint8_t { kCompute, kCopyToHost, kCopyFromHost };

  KernelRequest() {
    batch.kind = BatchKind::kKernel;
    batch.request = this;
  }

  Work work = Work::kCompute;
  KernelRequest* after = nullptr;  // that travels in this one's batch
  uint32_t node = 0;
  bool open = false;  // sent, and not answered yet
  const NodeItem* item = nullptr;
  EngineActor* owner = nullptr;
  devices::Tag tag;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::optional<devices::KernelContext> context;
  Status status;
  Batch batch;
};

// Runs one kernel at a time, on whichever worker resumes it.
class LaneActor : public EngineActor {
 public:
  LaneActor(caf::actor_config& config, HandOff policy, EngineActor& device);

 protected:
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  EngineActor* device_;
};

// A device whose kernels run on the workers. Admits requests: gives each to a
// free lane, or lets it wait for one. There is a lane per worker.
//
// Life cycle: spawned with its lanes by the session; serves all its runs;
// stopped with the session, and stops its lanes.
class DeviceActor : public EngineActor {
 public:
  DeviceActor(caf::actor_config& config, HandOff policy, int lanes);

 protected:
  // kKernel: a request. kIdle: a lane is free again.
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  void dispatch(Runner& runner);

  std::vector<caf::actor> handles_;
  std::vector<LaneActor*> idle_;
  std::deque<Batch*> waiting_;
};

}  // namespace tagflow::actors
