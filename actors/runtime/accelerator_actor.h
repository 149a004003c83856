// AcceleratorActor: a device that runs its kernels by itself.
#pragma once

#include <atomic>
#include <mutex>

#include "actors/runtime/device_actor.h"
#include "devices/device.h"

namespace tagflow::actors {

// Passes requests on to the accelerator, which answers their owners by itself.
// So no actor and no worker waits for it. The thread that delivers an answer
// lends itself for a short time: so the nodes after the kernel are launched
// without waking a worker. If the accelerator's thread has other work, this
// time is at most as long as waking a worker would take.
//
// Requests are launched in their order, with two exceptions. Of those that take
// memory, at most kMostTaking are launched at a time: Note [Freeing first]. A
// kernel that pops a value from a stack is launched when the value is
// available: Note [Swapping] in devices/swapper.h.
//
// Life cycle: spawned by the DeviceSet, like the actor of any device; stopped
// when the DeviceSet is destroyed.
class AcceleratorActor : public EngineActor {
 public:
  // The accelerator must outlive every request. The actor is stopped by a
  // message and may outlive the accelerator, but does not use it any more then.
  AcceleratorActor(caf::actor_config& config, HandOff policy,
                   devices::Accelerator& accelerator);

  // Ends the turn of a request that takes memory. Thread-safe.
  void end_taking() noexcept;

 protected:
  // kKernel: requests.
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  static constexpr int kMostTaking = 4;

  void take(KernelRequest& request, Runner& runner);
  // Thread-safe, as all below.
  void begin(KernelRequest& request);
  void pass_on(KernelRequest& request);
  void launch_kernel(KernelRequest& request);
  void begin_waiting();
  void answer(KernelRequest& request);

  devices::Accelerator& accelerator_;
  std::mutex mutex_;
  BatchQueue waiting_;  // until a taking permit ends; guarded by mutex_
  int taking_ = 0;      // taking permits in use; guarded by mutex_
  bool begins_waiting_ = false;  // in begin_waiting(); guarded by mutex_
  std::atomic<int> open_{0};     // requests that are not answered
  std::atomic<uint64_t> answers_{0};
};

}  // namespace tagflow::actors
