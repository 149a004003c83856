// AnnotatedActor: a CAF actor that the thread sanitizer can follow.
//
// libcaf_core is not instrumented, so the sanitizer sees neither its locks nor
// its atomics, and takes every hand-over of a message or of an actor for a
// race. The overrides below tell it of them; without it they do nothing.
#pragma once

#include <caf/event_based_actor.hpp>
#include <caf/logger.hpp>
#include <new>
#include <utility>

#include "actors/runtime/scheduler.h"

#if defined(TAGFLOW_SANITIZES_THREAD)
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace tagflow::actors {

// What the thread did up to now happens before what another does after its
// tsan_acquire of the same address.
inline void tsan_release([[maybe_unused]] void* address) {
#if defined(TAGFLOW_SANITIZES_THREAD)
  __tsan_release(address);
#endif
}
inline void tsan_acquire([[maybe_unused]] void* address) {
#if defined(TAGFLOW_SANITIZES_THREAD)
  __tsan_acquire(address);
#endif
}

// CAF ties each thread that spawns an actor to the system, which waits at its
// end until the threads have gone or let go of it. This lets go, so that a
// thread that lent itself may live on.
inline void leave_system() { caf::logger::set_current_actor_system(nullptr); }

// The end of an actor of which something was thrown. CAF calls this from a
// noexcept function, and copies the reason: only that of a normal end needs no
// memory, which is what is missing most likely.
inline caf::error without_reason(std::exception_ptr&) { return {}; }

// It has its place in the scheduler's queue, so that to send to it needs no
// memory but that of the message.
class AnnotatedActor : public caf::event_based_actor, public HasReady {
 public:
  explicit AnnotatedActor(caf::actor_config& config)
      : caf::event_based_actor(config), HasReady(this) {}

  // The actor itself: from who spawned it to the worker that runs it first,
  // from worker to worker, and to who drops the last reference.
  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    tsan_release(this);
    caf::event_based_actor::launch(unit, lazy, hide);
  }
  caf::resumable::resume_result resume(caf::execution_unit* unit,
                                       size_t max_throughput) override {
    tsan_acquire(this);
    const auto result = caf::event_based_actor::resume(unit, max_throughput);
    tsan_release(this);  // its end too, which consume() has not seen
    return result;
  }
  void initialize() override {
    caf::event_based_actor::initialize();
    tsan_release(this);
  }
  // A worker's reference, after the last that the worker reads of the actor.
  void intrusive_ptr_release_impl() override {
    tsan_release(this);
    caf::event_based_actor::intrusive_ptr_release_impl();
  }
  void on_destroy() override {
    tsan_acquire(this);
    // Of an actor that was not asked to stop. CAF would make a reason here,
    // which needs memory; and this is called from destructors.
    if (!getf(is_cleaned_up_flag)) cleanup({}, nullptr);
    // So does its record of the thread's running actor, which it makes where
    // the thread is tied to a system, as in a spawn that fails.
    leave_system();
    caf::event_based_actor::on_destroy();
  }

  // Messages: from the sender to the receiver.
  void enqueue(caf::mailbox_element_ptr what,
               caf::execution_unit* unit) override {
    tsan_release(what.get());
    caf::event_based_actor::enqueue(std::move(what), unit);
  }
  caf::invoke_message_result consume(caf::mailbox_element& what) override {
    tsan_acquire(&what);
    const auto result = caf::event_based_actor::consume(what);
    tsan_release(this);
    return result;
  }
};

}  // namespace tagflow::actors
