// EngineActor: the base of every actor of the engine, and the one place where
// the fast path meets CAF.
#pragma once

#include <atomic>
#include <caf/actor.hpp>
#include <caf/spawn_options.hpp>
#include <utility>

#include "actors/runtime/annotated_actor.h"
#include "actors/runtime/batch.h"
#include "actors/runtime/runner.h"
#include "actors/runtime/scheduler.h"

namespace tagflow::actors {

// A batch as a CAF message (HandOff::kMailbox). Local only.
struct BatchMessage {
  Batch* batch = nullptr;
};

// Asks an actor and those it started to end. Local only.
struct Stop {};

// A CAF actor with a second mailbox.
//
// The control plane is CAF's: address, behaviour, Stop, monitors, exit. The
// data plane is an intrusive lock-free stack of batches, which other actors
// and foreign threads push to (deliver), and direct hand-off (Note [Hand-off]
// in runner.h). Both are served by the same rule:
//
//   1. inbox_ is one word: idle_mark(), null while the actor runs or waits for
//      its turn with nothing new, notified_mark() if there may be a message in
//      CAF's mailbox, or the newest of the batches. Only who moved it from
//      idle_mark() may run the actor: there is one thread in it at a time.
//   2. Who delivers, publishes the batch and learns whether the actor was idle
//      by one compare-exchange. If it was, nobody but him can run the actor,
//      and so nobody can handle the batch, before he has scheduled it: the
//      batch's unit keeps the step and the actor. If it was not, he does not
//      touch the actor any more.
//   3. The actor becomes idle only by a compare-exchange from null: a delivery
//      or a notification in between fails it.
//   4. A runner that has run it may keep it from becoming idle for a while:
//      Note [Holding] in runner.h.
//   5. Who sends a message through CAF's mailbox, which needs two steps, to
//      publish and to notify, holds a reference in between.
//
// Life cycle: spawned by its parent, lazily (initialised by CAF with its first
// message); idle; running; held or idle; running ...;
// stopped by Stop, which it passes on.
class EngineActor : public AnnotatedActor {
 public:
  // Its batches are those of `store`, or, without, its own.
  EngineActor(caf::actor_config& config, HandOff policy,
              BatchStore* store = nullptr);

  // Pushes a batch and has the actor scheduled. Takes the batch, which holds a
  // unit of activity. Thread-safe.
  void deliver(Batch* batch) noexcept;
  // Runs the batch right here if the actor is idle, or held by this runner;
  // else delivers it. A thread that is lent does not run what many wait for.
  void hand_off(Batch* batch, Runner& runner);
  // As a message through CAF's mailbox. An error of the step where there is no
  // memory for that. Thread-safe.
  void mail(Batch* batch, Worker* worker);

  // From a thread that is no runner's: mail() where every batch is a message,
  // else deliver(). Thread-safe.
  void accept(Batch* batch) {
    policy_ == HandOff::kMailbox ? mail(batch, nullptr) : deliver(batch);
  }

  // CAF's doors to the actor.
  void enqueue(caf::mailbox_element_ptr what,
               caf::execution_unit* unit) override;
  void launch(caf::execution_unit* unit, bool lazy, bool hide) override;
  caf::resumable::resume_result resume(caf::execution_unit* unit,
                                       size_t max_throughput) override;

 protected:
  // One batch. Takes it. Called by one thread at a time.
  virtual void on_batch(Batch* batch, Runner& runner) = 0;
  // Before the actor ends: pass Stop on, drop handles.
  virtual void on_stop() {}
  HandOff policy() const { return policy_; }
  BatchPool& pool() { return pool_; }
  // Whether the actor is through with what it had to do, so that a runner may
  // hold it: Note [Holding]. False until said.
  void set_at_rest(bool at_rest) { at_rest_ = at_rest; }
  // The actor serves many steps, as a device does. False until said.
  void set_shared() { is_shared_ = true; }
  caf::behavior make_behavior() override;

 private:
  friend class Runner;
  // Marks in inbox_; no batch has such an address.
  static Batch* idle_mark() { return reinterpret_cast<Batch*>(uintptr_t(1)); }
  static Batch* notified_mark() {
    return reinterpret_cast<Batch*>(uintptr_t(2));
  }
  static bool is_batch(const Batch* word) { return uintptr_t(word) > 2; }

  void handle(Batch* batch, Runner& runner);
  bool take_inbox(Runner& runner);
  // Whether the actor is idle from now on.
  bool become_idle();
  // There may be a message. `worker` is the caller's, or null.
  void notify(Worker* worker);
  // REQUIRES of these: the caller moved inbox_ from idle, or runs the actor,
  // and will not touch it afterwards.
  void schedule(bool urgent) noexcept;
  void schedule_next(Worker* worker);
  // Makes the actor idle again, or has it scheduled, after a hand-off.
  void let_go();
  // Gives the unit in hand back, if nothing took it over.
  static void settle(Runner& runner);

  const HandOff policy_;
  bool is_shared_ = false;
  bool at_rest_ = false;
  uint64_t resumes_ = 0;        // seeds HandOff::kRandom
  Runner* runner_ = nullptr;    // while CAF's mailbox is served
  Scheduler* const scheduler_;  // null: another module of CAF's, as in tests
  BatchPool pool_;
  alignas(64) std::atomic<Batch*> inbox_{nullptr};
};

// Spawns an actor, on any thread, which leaves the system again, whatever is
// thrown. The caller includes caf/actor_system.hpp.
template <class T, caf::spawn_options Options = caf::no_spawn_options,
          class... Args>
caf::actor spawn_actor(caf::actor_system& system, Args&&... args) {
  const struct Leave {
    ~Leave() { leave_system(); }
  } leave;
  return system.template spawn<T, Options>(std::forward<Args>(args)...);
}

// The actor behind a handle. REQUIRES: it is a T of this process.
template <class T>
T* actor_pointer(const caf::actor& handle) {
  return static_cast<T*>(caf::actor_cast<caf::abstract_actor*>(handle));
}

}  // namespace tagflow::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::BatchMessage)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tagflow::actors::Stop)
