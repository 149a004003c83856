// AcceleratorActor: a device that runs its kernels by itself.
#pragma once

#include <atomic>
#include <mutex>

#include "actors/runtime/device_actor.h"
#include "devices/device.h"

namespace tagflow::actors {

// Passes requests on to the accelerator, which answers their owners by itself.
// So no actor, and no worker, waits for it. The thread that brings an answer
// lends itself for a moment: so what comes after the kernel is launched without
// waking a worker. Where there is something else to do for the accelerator, the
// moment is no longer than to wake a worker would take.
//
// Requests go in their order, but for two kinds. Of those that take memory only
// kMostTaking are there at once: Note [Freeing first]. A kernel that pops a
// value from a stack goes when the value is there: Note [Swapping] in
// devices/swapper.h.
//
// Life cycle: spawned by the DeviceSet, as any device's; stopped when that is
// destroyed.
class AcceleratorActor : public EngineActor {
 public:
  // The accelerator outlives every request. The actor may end after it, by a
  // message, but does not use it any more then.
  AcceleratorActor(caf::actor_config& config, HandOff policy,
                   devices::Accelerator& accelerator);

  // Of one of those that take memory. Thread-safe.
  void end_taking_turn() noexcept;

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
  BatchQueue waiting_;  // for one that takes memory to end; by the mutex
  int taking_ = 0;      // that have begun; by the mutex
  bool begins_waiting_ = false;  // some thread does; by the mutex
  std::atomic<int> open_{0};     // requests that are not answered
  std::atomic<uint64_t> answers_{0};
};

}  // namespace tagflow::actors
