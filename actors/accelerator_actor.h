// AcceleratorActor: a device that runs its kernels by itself.
#pragma once

#include <atomic>

#include "actors/device_actor.h"
#include "devices/device.h"

namespace tagflow::actors {

// Passes requests on to the accelerator, in their order, which answers their
// owners by itself. So no actor, and no worker, waits for it. The thread that
// brings an answer lends itself for a moment: so what comes after the kernel is
// launched without waking a worker. Where there is something else to do for the
// accelerator, the moment is no longer than to wake a worker would take.
//
// Life cycle: spawned by the DeviceSet, as any device's; stopped when that is
// destroyed.
class AcceleratorActor : public EngineActor {
 public:
  // The accelerator outlives every request. The actor may end after it, by a
  // message, but does not use it any more then.
  AcceleratorActor(caf::actor_config& config, HandOff policy,
                   devices::Accelerator& accelerator);

 protected:
  // kKernel: requests.
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  void take(KernelRequest& request, Runner& runner);
  void begin(KernelRequest& request);
  // Thread-safe.
  void answer(KernelRequest& request);

  devices::Accelerator& accelerator_;
  std::atomic<int> open_{0};  // requests that are not answered
  std::atomic<uint64_t> answers_{0};
};

}  // namespace tagflow::actors
