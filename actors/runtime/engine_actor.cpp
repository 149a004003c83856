#include "actors/runtime/engine_actor.h"

#include <caf/actor_system.hpp>
#include <caf/detail/sync_request_bouncer.hpp>

#include "actors/runtime/step.h"
#include "actors/watch/trace.h"

namespace tagflow::actors {

EngineActor::EngineActor(caf::actor_config& config, HandOff policy,
                         BatchStore* store)
    : AnnotatedActor(config),
      policy_(policy),
      scheduler_(dynamic_cast<Scheduler*>(&home_system().scheduler())),
      pool_(store) {
  // An unexpected message must neither print nor end the actor.
  set_default_handler(caf::drop);
  set_error_handler([](caf::error&) {});
  // If there is no memory to forward Stop, the receiver ends with its last
  // reference.
  set_exception_handler(without_reason);
}

void EngineActor::deliver(Batch* batch) noexcept {
  const bool urgent = batch->step->urgent;
  Batch* head = inbox_.load(std::memory_order_relaxed);
  do {
    batch->next = is_batch(head) ? head : nullptr;
  } while (!inbox_.compare_exchange_weak(head, batch, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  if (head == idle_mark()) schedule(urgent);
}

void EngineActor::schedule(bool urgent) noexcept {
  caf::intrusive_ptr_add_ref(ctrl());  // the scheduler's
  if (scheduler_ != nullptr) {
    ready().urgent = urgent;
    scheduler_->enqueue(ready());
  } else {
    home_system().scheduler().enqueue(this);
  }
}

void EngineActor::schedule_next(Worker* worker) {
  if (worker == nullptr || !worker->is_of(scheduler_)) {
    schedule(false);
    return;
  }
  caf::intrusive_ptr_add_ref(ctrl());
  worker->run_next(ready());
}

void EngineActor::notify(Worker* worker) {
  Batch* word = inbox_.load(std::memory_order_relaxed);
  for (;;) {
    if (word == notified_mark() || is_batch(word)) return;
    Batch* const wanted = word == idle_mark() ? nullptr : notified_mark();
    if (inbox_.compare_exchange_weak(word, wanted, std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
      break;
  }
  if (word == idle_mark()) schedule_next(worker);
}

void EngineActor::mail(Batch* batch, Worker* worker) {
  // Once the message is in the mailbox, another thread may handle it, and end
  // the step and this actor.
  const caf::strong_actor_ptr alive(ctrl());
  try {
    enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(), {},
                                      BatchMessage{batch}),
            worker);
  } catch (...) {
    batch->step->fault();
    // No batch of a failed step has an effect; deliver() needs no memory.
    deliver(batch);
  }
}

void EngineActor::enqueue(caf::mailbox_element_ptr what,
                          caf::execution_unit* unit) {
  tsan_release(what.get());
  const auto id = what->mid;
  auto from = what->sender;
  switch (mailbox().push_back(std::move(what))) {
    case caf::intrusive::inbox_result::unblocked_reader:
      notify(unit != nullptr ? Scheduler::this_worker() : nullptr);
      break;
    case caf::intrusive::inbox_result::queue_closed:
      if (id.is_request()) {
        caf::detail::sync_request_bouncer bounce{caf::exit_reason::unknown};
        bounce(from, id);
      }
      break;
    case caf::intrusive::inbox_result::success:
      break;
  }
}

void EngineActor::launch(caf::execution_unit* unit, bool lazy, bool hide) {
  inbox_.store(lazy ? idle_mark() : notified_mark(), std::memory_order_relaxed);
  // CAF would initialise the actor with the first message. A lack of memory
  // would lose a batch then; here the spawner gets the error.
  if (policy_ != HandOff::kDirect) initialize();
  AnnotatedActor::launch(unit, lazy, hide);
}

caf::behavior EngineActor::make_behavior() {
  return {[this](BatchMessage& message) {
            handle(message.batch, *runner_);
            settle(*runner_);
          },
          [this](Stop&) {
            on_stop();
            quit();
          }};
}

void EngineActor::settle(Runner& runner) {
  runner.give_back(std::exchange(runner.credit_, nullptr));
}

// Inlined into hand_off(), which every hop calls.
[[gnu::always_inline]] inline void EngineActor::handle(Batch* batch,
                                                       Runner& runner) {
  Step* const step = batch->step;
  runner.credit_ = step;
  runner.step_ = step;
  try {
    on_batch(batch, runner);
  } catch (...) {
    step->fault();
  }
}

bool EngineActor::take_inbox(Runner& runner) {
  Batch* stack = inbox_.exchange(nullptr, std::memory_order_acq_rel);
  if (!is_batch(stack)) return false;
  Batch* fifo = nullptr;
  while (stack != nullptr) {
    Batch* next = stack->next;
    stack->next = fifo;
    fifo = stack;
    stack = next;
  }
  while (fifo != nullptr) {
    Batch* next = fifo->next;
    handle(fifo, runner);
    // There are several batches: those before the last give back their units
    // here. The unit of the last one keeps the step alive. If that one is of
    // another step, the actor serves many steps and is kept alive by the
    // engine.
    if (next != nullptr) settle(runner);
    fifo = next;
  }
  return true;
}

bool EngineActor::become_idle() {
  Batch* nothing = nullptr;
  return mailbox().blocked() &&
         inbox_.compare_exchange_strong(nothing, idle_mark(),
                                        std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
}

caf::resumable::resume_result EngineActor::resume(caf::execution_unit* unit,
                                                  size_t max_throughput) {
  // CAF keeps a per-thread record of the running actor behind a global lock,
  // even with logging compiled out, unless the thread has no logger.
  leave_system();
  tsan_acquire(this);
  context(unit);
  Worker* const worker =
      scheduler_ != nullptr ? static_cast<Worker*>(unit) : nullptr;
  // The seed is different for each actor, and each time.
  Runner runner(worker, policy_, Scheduler::kQuantum,
                id() + (++resumes_ << 32));
  for (;;) {
    // Cleared before the mailbox is read: a later message notifies again.
    Batch* notified = notified_mark();
    inbox_.compare_exchange_strong(notified, nullptr,
                                   std::memory_order_acq_rel);
    // CAF initialises the actor with its first message, which needs memory:
    // batches need neither.
    if (!mailbox().blocked()) {
      runner_ = &runner;
      const auto result = AnnotatedActor::resume(unit, max_throughput);
      runner_ = nullptr;
      if (result != caf::resumable::awaiting_message) {
        // The actor has ended, or more messages are waiting: no other thread
        // may run it.
        runner.flush();
        return result;
      }
    }
    Step* unsettled = nullptr;
    if (take_inbox(runner)) unsettled = std::exchange(runner.credit_, nullptr);
    const bool idle = become_idle();
    if (!idle && runner.must_yield()) {
      // Other actors wait, and there is more to do here.
      runner.flush();
      runner.give_back(unsettled);
      return caf::resumable::resume_later;
    }
    runner.give_back(unsettled);
    if (idle) break;
  }
  // From here on another thread may run this actor.
  runner.drain();
  return caf::resumable::awaiting_message;
}

void EngineActor::hand_off(Batch* batch, Runner& runner) {
  if (!runner.take_held(this)) {
    Batch* idle = idle_mark();
    if ((is_shared_ && runner.is_callers()) ||
        !inbox_.compare_exchange_strong(idle, nullptr,
                                        std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      runner.let_go_of_all();
      runner.leave_trace();
      deliver(batch);
      return;
    }
  }
  handle(batch, runner);
  Step* unsettled = std::exchange(runner.credit_, nullptr);
  if (at_rest_ && unsettled == nullptr &&
      inbox_.load(std::memory_order_relaxed) == nullptr) {
    runner.hold(this);
    return;
  }
  let_go();
  if (unsettled == nullptr) return;
  runner.let_go_of_all();
  runner.give_back(unsettled);
}

void EngineActor::let_go() {
  Batch* word = nullptr;
  if (inbox_.compare_exchange_strong(word, idle_mark(),
                                     std::memory_order_acq_rel,
                                     std::memory_order_acquire))
    return;
  // A batch or message arrived meanwhile: the scheduler runs the actor.
  schedule(is_batch(word) && word->step->urgent);
}

}  // namespace tagflow::actors
