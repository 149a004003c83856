// AnnotatedActor: a CAF actor that the thread sanitizer can follow.
//
// libcaf_core is not instrumented, so the sanitizer sees neither its locks nor
// its atomics, and reports every hand-over of a message or of an actor as a
// race. The overrides below annotate these hand-overs; without the sanitizer
// they do nothing.
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

// Everything that the thread did before happens before everything that another
// thread does after its tsan_acquire of the same address.
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

// CAF ties each thread that spawns an actor to the system, whose destructor
// waits until these threads have ended or released it. This releases the
// system, so that a lent thread may outlive it.
inline void leave_system() { caf::logger::set_current_actor_system(nullptr); }

// The exit reason of an actor that threw. CAF calls this from a noexcept
// function, and copies the reason. Only the reason of a normal exit needs no
// memory, and a lack of memory is the most likely cause.
inline caf::error without_reason(std::exception_ptr&) { return {}; }

// It contains its link in the scheduler's queue, so that a message to it needs
// no other memory.
class AnnotatedActor : public caf::event_based_actor, public HasReady {
 public:
  explicit AnnotatedActor(caf::actor_config& config)
      : caf::event_based_actor(config), HasReady(this) {}

  // Hand-overs of the actor itself: from its spawner to the worker that runs it
  // first, from worker to worker, and to the thread that drops the last
  // reference.
  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    tsan_release(this);
    caf::event_based_actor::launch(unit, lazy, hide);
  }
  caf::resumable::resume_result resume(caf::execution_unit* unit,
                                       size_t max_throughput) override {
    tsan_acquire(this);
    const auto result = caf::event_based_actor::resume(unit, max_throughput);
    tsan_release(this);  // includes its end, which consume() does not see
    return result;
  }
  void initialize() override {
    caf::event_based_actor::initialize();
    tsan_release(this);
  }
  // A worker releases its reference after its last access to the actor.
  void intrusive_ptr_release_impl() override {
    tsan_release(this);
    caf::event_based_actor::intrusive_ptr_release_impl();
  }
  void on_destroy() override {
    tsan_acquire(this);
    // The actor was not asked to stop. CAF would allocate a reason here,
    // although destructors call this function.
    if (!getf(is_cleaned_up_flag)) cleanup({}, nullptr);
    // CAF's record of the thread's running actor would need memory, too. CAF
    // makes it if the thread is tied to a system, as in a spawn that fails.
    leave_system();
    caf::event_based_actor::on_destroy();
  }

  // Hand-overs of messages from the sender to the receiver.
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
