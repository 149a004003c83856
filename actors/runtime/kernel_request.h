// KernelRequest: a kernel that does not run where its node fires.
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
// Thirty-two branches, each of which makes a large tensor and sums it up, need
// the memory of all these tensors where all are made first, and that of a few
// where each is summed up when it is there. So what waits at a device is in two
// classes: a kernel *frees* memory where it holds the last references to
// tensors of no less bytes than its outputs have, as far as their shapes are
// known; and those go first. All others take memory. An accelerator is given
// only kMostTaking of these at a time, since it runs all in the order of their
// launches: each holds a *taking turn*, which ends when its iteration has taken
// the answer and what follows from it is at the accelerator. On a device
// without a limit all count as if they freed memory, so that each goes in its
// turn.

class AcceleratorActor;

// The turn of a kernel that takes memory, or none. It ends when this is
// destroyed, on any thread.
class TakingTurn {
 public:
  TakingTurn() = default;
  explicit TakingTurn(AcceleratorActor& accelerator);
  TakingTurn(TakingTurn&& other) noexcept = default;
  TakingTurn& operator=(TakingTurn&& other) noexcept;
  ~TakingTurn() { end(); }
  void end() noexcept;

 private:
  // Held: whoever ends the turn may have let the step go on to its end, and
  // with it all that the actor is for.
  caf::actor accelerator_;
};

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

  // That of an asynchronous kernel. Called once. Thread-safe.
  void answer_async(Status&& answer);
  // Waits for what `claim` has not: Note [Parking] in
  // devices/state/state_lock.h. Then it comes back to its owner, with
  // `is_granted`, or with an error. REQUIRES: the caller has a unit of the
  // step, which is not the request's.
  void park();

  Work work = Work::kCompute;
  bool is_granted = false;         // its claim; yet to be computed
  bool frees = false;              // Note [Freeing first]
  TakingTurn taking;               // the same; its own
  TakingTurn taken;                // of what it follows from
  StepWait wait;                   // of an asynchronous kernel, or parked
  StepTurn* turn = nullptr;        // of its run, at the device
  KernelRequest* after = nullptr;  // that travels in this one's batch
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
  // Takes what there is of the claim, and waits for the rest.
  void go_on_waiting();
  Status cancelled() const;
};

}  // namespace tagflow::actors
