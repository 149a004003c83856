// KernelRequest: a kernel that another actor or thread runs.
#pragma once

#include <caf/actor.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/plan/plan.h"
#include "actors/runtime/batch.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/step.h"
#include "devices/state/state_lock.h"

namespace tagflow::actors {

// Note [Freeing first]
// Suppose that each of 32 branches makes a large tensor and sums it up. If all
// tensors are made first, they need the memory of 32 tensors; if each is summed
// up as soon as it is made, they need that of a few. So waiting kernels are in
// two classes. A kernel *frees* memory if it holds the last references to
// tensors of at least as many bytes as its outputs, as far as their shapes are
// known; these kernels go first. All others *take* memory. An accelerator runs
// all kernels in the order of their launches, so it gets only kMostTaking of
// these at a time: each holds a *taking permit*. The permit ends when the
// iteration has taken the answer, and the kernels that follow from it are at
// the accelerator. On a device without a limit, all kernels count as freeing,
// so that they keep their order.

class AcceleratorActor;

// The permit of a kernel that takes memory, or no permit. It ends when this is
// destroyed, on any thread.
class TakingPermit {
 public:
  TakingPermit() = default;
  explicit TakingPermit(AcceleratorActor& accelerator);
  TakingPermit(TakingPermit&& other) noexcept = default;
  TakingPermit& operator=(TakingPermit&& other) noexcept;
  ~TakingPermit() { end(); }
  void end() noexcept;

 private:
  // A counted reference: the step, which keeps the actor alive, may end before
  // the permit does.
  caf::actor accelerator_;
};

// A kernel to run elsewhere, or a tensor to copy between the host and an
// accelerator, and the answer. The request travels to the device and back to
// the iteration, in the one batch that it owns. Its iteration actor reuses it,
// so it allocates nothing once its vectors have grown.
//
// Life cycle: free; filled by its owner, which moves the inputs in; at the
// device, a lane, or an asynchronous kernel; answered; free again.
struct KernelRequest {
  // A copy has one input and one output.
  enum class Work : uint8_t { kCompute, kCopyToHost, kCopyFromHost };

  KernelRequest() {
    batch.kind = BatchKind::kKernel;
    batch.request = this;
  }

  // The answer of an asynchronous kernel. Called once. Thread-safe.
  void answer_async(Status&& answer);
  // Waits for the locks that `claim` does not have: Note [Parking] in
  // devices/state/state_lock.h. Then the request returns to its owner, with
  // `is_granted`, or with an error. REQUIRES: the caller has a unit of the step
  // other than the request's.
  void park();

  Work work = Work::kCompute;
  bool is_granted = false;         // its claim; it is not computed yet
  bool frees = false;              // memory: Note [Freeing first]
  TakingPermit taking;             // its taking permit
  TakingPermit taken;              // that of the kernel which it follows
  KernelWait wait;                 // of an asynchronous kernel, or parked
  StepQueue* queue = nullptr;      // of its run, at the device
  KernelRequest* after = nullptr;  // the next in this one's batch
  uint32_t node = 0;
  const NodeItem* item = nullptr;
  EngineActor* owner = nullptr;
  devices::Tag tag;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  devices::StateClaim claim;  // of a StateKernel; the inputs outlive it
  std::optional<devices::KernelContext> context;
  Status status;
  Batch batch;

 private:
  class Parked;
  // Takes the free locks of the claim, and waits for the others.
  void go_on_waiting();
  Status cancelled() const;
};

}  // namespace tagflow::actors
