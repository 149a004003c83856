// ActorKernel: the base of the kernels that operate on a StateActor.
#pragma once

#include "devices/state/handle_input.h"
#include "devices/state/resource_op.h"
#include "devices/state/state_actor.h"

namespace tagflow::devices {

// See Note [Operations that wait] in state_actor.h.
class ActorKernel : public AsyncKernel {
 public:
  // Overridden where an actor waits for something outside, as for a file.
  WaitsFor waits_for() const override { return WaitsFor::kSharedState; }
  bool is_bookkeeping() const final { return true; }
  std::optional<Status> try_compute(KernelContext& context) const final;
  void compute_async(KernelContext& context, Completion done) const final;
  std::string describe_wait(const KernelContext& context) const final;

  // The actor that it operates on. Thread-safe.
  virtual Result<Ref<StateActor>> find(const KernelContext& context) const = 0;
  // Checks the inputs, and determines the errand. Called outside of the actor:
  // reads only its constant parts. Thread-safe.
  virtual Status check(const KernelContext& context, const StateActor& actor,
                       Errand& errand) const;
  // Whether it changes what checkpoints have of the actor.
  virtual bool changes_contents() const { return true; }
  // The line in which it waits; none: it never waits.
  virtual std::optional<Line> line() const { return std::nullopt; }
  // --- Called inside.
  // Whether it can be performed, if only to fail.
  virtual Readiness readiness(const KernelContext& context,
                              const StateActor& actor,
                              const Errand& errand) const;
  // Does what can be done: everything, or, for a part, as much as it notes in
  // `errand`. If it fails or throws, nothing has changed.
  virtual Status perform(KernelContext& context, StateActor& actor,
                         Errand& errand) const = 0;
};

// An ActorKernel whose first input is the handle of an `Actor`.
template <class Actor>
class HandleKernel : public ActorKernel {
 public:
  Result<Ref<StateActor>> find(const KernelContext& context) const final {
    TAGFLOW_ASSIGN(Actor * actor, handle_input<Actor>(context, 0));
    return Ref<StateActor>(actor);
  }
};

}  // namespace tagflow::devices
