#include "actors/engine_actor.h"

#include <caf/actor_system.hpp>
#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/logger.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <exception>

#include "actors/step.h"
#include "actors/trace.h"

namespace tagflow::actors {
namespace {

// A worker looks for other work at least this often.
constexpr std::chrono::microseconds kWorkerQuantum{500};

}  // namespace

void leave_system() { caf::logger::set_current_actor_system(nullptr); }

EngineActor::EngineActor(caf::actor_config& config, HandOff policy)
    : AnnotatedActor(config), policy_(policy) {
  // An engine actor gets only what it expects; the rest must not print, and
  // must not end it.
  set_default_handler(caf::drop);
  set_error_handler([](caf::error&) {});
}

EngineActor::~EngineActor() {
  for (Batch* batch = inbox_.load(std::memory_order_acquire); batch;) {
    Batch* next = batch->next;
    delete batch;
    batch = next;
  }
}

void EngineActor::deliver(Batch* batch, caf::execution_unit* unit) {
  Batch* head = inbox_.load(std::memory_order_relaxed);
  do {
    batch->next = head;
  } while (!inbox_.compare_exchange_weak(head, batch, std::memory_order_release,
                                         std::memory_order_relaxed));
  wake(unit);
}

void EngineActor::wake(caf::execution_unit* unit) {
  if (state_.exchange(kNotified, std::memory_order_acq_rel) != kIdle) return;
  caf::intrusive_ptr_add_ref(ctrl());  // the scheduler's
  if (unit != nullptr) {
    unit->exec_later(this);
  } else {
    home_system().scheduler().enqueue(this);
  }
}

void EngineActor::mail(Batch* batch, caf::execution_unit* unit) {
  enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(), {},
                                    BatchMessage{batch}),
          unit);
}

void EngineActor::enqueue(caf::mailbox_element_ptr what,
                          caf::execution_unit* unit) {
  tsan_release(what.get());
  const auto id = what->mid;
  auto from = what->sender;
  switch (mailbox().push_back(std::move(what))) {
    case caf::intrusive::inbox_result::unblocked_reader:
      wake(unit);
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
  state_.store(lazy ? kIdle : kNotified, std::memory_order_relaxed);
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

// Inlined into hand_off(), which every hop goes through.
[[gnu::always_inline]] inline void EngineActor::handle(Batch* batch,
                                                       Runner& runner) {
  runner.credit_ = batch->step;
  Step* step = batch->step;
  try {
    on_batch(batch, runner);
  } catch (const std::exception& thrown) {
    step->fail(status_of(thrown).with_prefix("[engine] "));
  }
}

bool EngineActor::take_inbox(Runner& runner) {
  Batch* stack = inbox_.exchange(nullptr, std::memory_order_acquire);
  if (stack == nullptr) return false;
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
    // More than one batch: those before the last give their unit back here,
    // with the step kept alive by the unit of the last.
    if (next != nullptr) settle(runner);
    fifo = next;
  }
  return true;
}

caf::resumable::resume_result EngineActor::resume(caf::execution_unit* unit,
                                                  size_t max_throughput) {
  // CAF keeps a per-thread record of the running actor behind a global lock,
  // even with logging compiled out, unless told that there is no logger.
  leave_system();
  tsan_acquire(this);
  state_.exchange(kRunning, std::memory_order_acq_rel);
  context(unit);
  // Other coins for each actor, and each time.
  Runner runner(unit, policy_, kWorkerQuantum, id() + (++resumes_ << 32));
  for (;;) {
    if (!getf(is_initialized_flag) || !mailbox().blocked()) {
      runner_ = &runner;
      const auto result = AnnotatedActor::resume(unit, max_throughput);
      runner_ = nullptr;
      if (result != caf::resumable::awaiting_message) {
        // Ended, or more messages are waiting: nobody else may run it.
        runner.flush();
        return result;
      }
    }
    Step* unsettled = nullptr;
    if (take_inbox(runner)) unsettled = std::exchange(runner.credit_, nullptr);
    int running = kRunning;
    bool idle = inbox_.load(std::memory_order_acquire) == nullptr &&
                mailbox().blocked() &&
                state_.compare_exchange_strong(running, kIdle,
                                               std::memory_order_acq_rel);
    // An exchange, to see what the deliverer did before it set kNotified.
    if (!idle) state_.exchange(kRunning, std::memory_order_acq_rel);
    runner.give_back(unsettled);
    if (idle) break;
  }
  // From here on another thread may run this actor.
  runner.drain();
  return caf::resumable::awaiting_message;
}

void EngineActor::hand_off(Batch* batch, Runner& runner) {
  if (!runner.take_held(this)) {
    int idle = kIdle;
    if (!state_.compare_exchange_strong(idle, kRunning,
                                        std::memory_order_acq_rel)) {
      runner.let_go_of_all();
      runner.leave_trace();
      deliver(batch, nullptr);
      return;
    }
  }
  handle(batch, runner);
  Step* unsettled = std::exchange(runner.credit_, nullptr);
  if (at_rest_ && unsettled == nullptr &&
      state_.load(std::memory_order_relaxed) == kRunning) {
    runner.hold(this);
    return;
  }
  let_go();
  if (unsettled == nullptr) return;
  runner.let_go_of_all();
  runner.give_back(unsettled);
}

void EngineActor::let_go() {
  int running = kRunning;
  if (inbox_.load(std::memory_order_acquire) == nullptr &&
      state_.compare_exchange_strong(running, kIdle, std::memory_order_acq_rel))
    return;
  // Something was delivered meanwhile: let the scheduler run the actor.
  state_.store(kNotified, std::memory_order_release);
  caf::intrusive_ptr_add_ref(ctrl());
  home_system().scheduler().enqueue(this);
}

// --- Runner -----------------------------------------------------------------

namespace {

// A thread that lends itself may be awaited by a deadline.
constexpr int kHopsPerClockRead = 64;
constexpr int kLentHopsPerClockRead = 4;

// To wake a worker, which then takes over, costs as much.
constexpr std::chrono::microseconds kRecalledQuantum{5};

// What may be recalled must look for that after each hop.
int hops_per_clock_read(bool lent, bool may_be_recalled) {
  return may_be_recalled ? 1 : lent ? kLentHopsPerClockRead : kHopsPerClockRead;
}

}  // namespace

Runner::Runner(caf::execution_unit* unit, HandOff policy,
               std::chrono::nanoseconds quantum, uint64_t seed,
               const std::atomic<int>* recall)
    : unit_(unit),
      policy_(policy),
      quantum_(quantum),
      recall_(recall),
      started_(lent() ? Clock::now() : Clock::time_point()),
      hops_until_check_(hops_per_clock_read(lent(), recall != nullptr)),
      random_(seed * 0x9e3779b97f4a7c15u + 1) {}

bool Runner::coin() {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  return (random_ >> 40 & 1) != 0;
}

inline void Runner::take_unit(Batch* batch) {
  // Without a queue the receiver may be done before this handler is, which
  // must keep a unit of its own until then.
  if (credit_ != nullptr && policy_ == HandOff::kDirect) {
    credit_ = nullptr;
  } else {
    batch->step->add_activity();
  }
}

void Runner::post(EngineActor* target, Batch* batch) {
  take_unit(batch);
  post_counted(target, batch);
}

void Runner::post_later(EngineActor* target, Batch* batch) {
  take_unit(batch);
  if (sent_by_policy(target, batch)) return;
  if (newest_.batch == nullptr) {
    newest_ = {target, batch};
  } else {
    queue_.insert(queue_.begin(), {target, batch});
  }
}

void Runner::renew(Step* step) {
  if (credit_ != nullptr) return;
  step->add_activity();
  credit_ = step;
}

bool Runner::sent_by_policy(EngineActor* target, Batch* batch) {
  if (policy_ == HandOff::kDirect) return false;
  if (policy_ == HandOff::kMailbox) {
    target->mail(batch, unit_);
  } else if (coin()) {
    coin() ? target->mail(batch, nullptr) : target->deliver(batch, nullptr);
  } else {
    return false;
  }
  return true;
}

void Runner::post_counted(EngineActor* target, Batch* batch) {
  if (sent_by_policy(target, batch)) return;
  if (newest_.batch != nullptr) [[unlikely]]
    push_older(newest_);
  newest_ = {target, batch};
}

// Apart, to save post() the registers that growing needs.
[[gnu::noinline]] void Runner::push_older(const Posted& posted) {
  queue_.push_back(posted);
}

void Runner::find_trace(Trace& trace) {
  trace_ = &trace;
  trace_buffer_ = &trace.buffer();
}

void Runner::give_back(Step* step) {
  if (step == nullptr) return;
  leave_trace();
  step->drop_activity();
}

void Runner::leave_trace() {
  if (trace_ == nullptr) return;
  trace_buffer_->leave();
  trace_ = nullptr;
}

void Runner::flush() {
  let_go_of_all();
  leave_trace();
  for (const Posted& posted : queue_)
    posted.target->deliver(posted.batch, nullptr);
  queue_.clear();
  if (newest_.batch == nullptr) return;
  newest_.target->deliver(std::exchange(newest_.batch, nullptr), nullptr);
}

inline bool Runner::take_held(EngineActor* actor) {
  for (EngineActor*& held : held_) {
    if (held != actor) continue;
    held = nullptr;
    return true;
  }
  return false;
}

inline void Runner::hold(EngineActor* actor) {
  auto& [older, newer] = held_;
  if (newer != nullptr) {
    if (older != nullptr) [[unlikely]]
      older->let_go();
    older = newer;
  }
  newer = actor;
}

void Runner::let_go_of_all() {
  for (EngineActor*& actor : held_)
    if (actor != nullptr) std::exchange(actor, nullptr)->let_go();
}

bool Runner::over_quantum() {
  if (--hops_until_check_ > 0) return false;
  hops_until_check_ = hops_per_clock_read(lent(), recall_ != nullptr);
  const auto now = Clock::now();
  if (started_ == Clock::time_point()) started_ = now;
  const bool is_recalled =
      recall_ != nullptr && recall_->load(std::memory_order_relaxed) > 0;
  return now - started_ > (is_recalled ? kRecalledQuantum : quantum_);
}

void Runner::drain() {
  while (newest_.batch != nullptr) {
    if (over_quantum()) {
      flush();
      return;
    }
    const Posted posted = newest_;
    if (queue_.empty()) [[likely]] {
      newest_.batch = nullptr;
    } else {
      newest_ = queue_.back();
      queue_.pop_back();
    }
    posted.target->hand_off(posted.batch, *this);
  }
}

}  // namespace tagflow::actors
