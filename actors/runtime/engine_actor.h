// EngineActor: the base of every actor of the engine, and the only interface
// between the fast path and CAF.
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

// Asks an actor and its children to end. Local only.
struct Stop {};

// A CAF actor with a second mailbox.
//
// The control plane is CAF's: address, behaviour, Stop, monitors, exit. The
// data plane is an intrusive lock-free stack of batches, to which other actors
// and foreign threads push (deliver), and direct hand-off (Note [Hand-off] in
// runner.h). Both follow the same rules:
//
//   1. inbox_ is one word. It is idle_mark(); or null while the actor runs or
//      waits for its turn and nothing is new; or notified_mark() if CAF's
//      mailbox may have a message; or the newest batch. Only the thread that
//      moved it from idle_mark() may run the actor, so one thread runs the
//      actor at a time.
//   2. A delivering thread publishes the batch, and learns whether the actor
//      was idle, by one compare-exchange. If the actor was idle, no other
//      thread can run it or handle the batch before this thread has scheduled
//      it: the batch's unit keeps the step and the actor alive. If the actor
//      was not idle, this thread does not access it any more.
//   3. The actor becomes idle only by a compare-exchange from null, which fails
//      after a delivery or a notification.
//   4. A runner that has run the actor may keep it from becoming idle for a
//      while: Note [Holding] in runner.h.
//   5. A message through CAF's mailbox needs two operations, to publish and to
//      notify. The sender holds a reference in between.
//
// Life cycle: spawned by its parent, lazily (initialised by CAF with its first
// message); idle; running; held or idle; running ...;
// stopped by Stop, which it forwards.
class EngineActor : public AnnotatedActor {
 public:
  // Its batches come from `store`; if that is null, the actor owns them.
  EngineActor(caf::actor_config& config, HandOff policy,
              BatchStore* store = nullptr);

  // Pushes a batch and schedules the actor if it is idle. Takes the batch,
  // which holds a unit of activity. Thread-safe.
  void deliver(Batch* batch) noexcept;
  // Runs the batch on this thread if the actor is idle, or held by this runner;
  // otherwise delivers it. A lent thread does not run shared actors.
  void hand_off(Batch* batch, Runner& runner);
  // Sends the batch as a message through CAF's mailbox. Fails the step if there
  // is no memory for that. Thread-safe.
  void mail(Batch* batch, Worker* worker);

  // For threads without a runner: mail() with HandOff::kMailbox, otherwise
  // deliver(). Thread-safe.
  void accept(Batch* batch) {
    policy_ == HandOff::kMailbox ? mail(batch, nullptr) : deliver(batch);
  }
  HandOff policy() const { return policy_; }

  // The entry points for CAF.
  void enqueue(caf::mailbox_element_ptr what,
               caf::execution_unit* unit) override;
  void launch(caf::execution_unit* unit, bool lazy, bool hide) override;
  caf::resumable::resume_result resume(caf::execution_unit* unit,
                                       size_t max_throughput) override;

 protected:
  // Handles one batch. Takes it. Called by one thread at a time.
  virtual void on_batch(Batch* batch, Runner& runner) = 0;
  // Called before the actor ends: forwards Stop, and drops handles.
  virtual void on_stop() {}
  BatchPool& pool() { return pool_; }
  // Sets whether the actor has nothing left to do, so that a runner may hold
  // it: Note [Holding]. Initially false.
  void set_at_rest(bool at_rest) { at_rest_ = at_rest; }
  // Declares that the actor serves many steps, as a device does.
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
  // Tries to make the actor idle; returns whether it is.
  bool become_idle();
  // CAF's mailbox may have a message. `worker` is the caller's, or null.
  void notify(Worker* worker);
  // REQUIRES: the caller moved inbox_ from idle, or runs the actor, and will
  // not access it afterwards.
  void schedule(bool urgent) noexcept;
  void schedule_next(Worker* worker);
  // Makes the actor idle again, or schedules it, after a hand-off.
  void let_go();
  // Gives back the unit in hand, unless a posted batch took it over.
  static void settle(Runner& runner);

  const HandOff policy_;
  bool is_shared_ = false;
  bool at_rest_ = false;
  uint64_t resumes_ = 0;        // seeds HandOff::kRandom
  Runner* runner_ = nullptr;    // while it handles messages of CAF's mailbox
  Scheduler* const scheduler_;  // null: another scheduler of CAF's, as in tests
  BatchPool pool_;
  alignas(64) std::atomic<Batch*> inbox_{nullptr};
};

// Spawns an actor on any thread. The thread leaves the system afterwards, even
// after an exception. The caller must include caf/actor_system.hpp.
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
