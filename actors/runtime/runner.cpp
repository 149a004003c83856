#include "actors/runtime/runner.h"

#include <utility>

#include "actors/runtime/engine_actor.h"
#include "actors/runtime/scheduler.h"
#include "actors/runtime/step.h"
#include "actors/watch/trace.h"

namespace tagflow::actors {
namespace {

// A lent thread may have to return by a deadline.
constexpr int kHopsPerClockRead = 64;
constexpr int kLentHopsPerClockRead = 4;

// Waking a worker, which then takes over, costs the same.
constexpr std::chrono::microseconds kRecalledQuantum{5};

// For firings that are this quick, reading the clock would take a few percent
// of the time.
constexpr std::chrono::microseconds kQuickFirings{4};
constexpr int kLooksLeftOut = 3;

// A runner that can be recalled must check for that after each hop.
int hops_per_clock_read(bool lent, bool may_be_recalled) {
  return may_be_recalled ? 1 : lent ? kLentHopsPerClockRead : kHopsPerClockRead;
}

}  // namespace

Runner::Runner(Worker* worker, HandOff policy, std::chrono::nanoseconds quantum,
               uint64_t seed, const std::atomic<int>* recall)
    : worker_(worker),
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
  // Without a queue, the receiver may finish before this handler, which must
  // keep a unit of its own until its end.
  if (credit_ == batch->step && policy_ == HandOff::kDirect) {
    credit_ = nullptr;
  } else {
    batch->step->add_activity();
  }
}

// The most frequent case: it evaluates no condition twice.
inline bool Runner::is_own(const Batch* batch) const {
  return policy_ == HandOff::kDirect && batch->step == step_;
}

inline void Runner::push(EngineActor* target, Batch* batch) {
  batch->target = target;
  batch->next = newest_;
  if (newest_ == nullptr) oldest_ = batch;
  newest_ = batch;
}

void Runner::post(EngineActor* target, Batch* batch) {
  take_unit(batch);
  if (!is_own(batch) && sent_elsewhere(target, batch)) return;
  push(target, batch);
}

void Runner::post_later(EngineActor* target, Batch* batch) {
  take_unit(batch);
  if (!is_own(batch) && sent_elsewhere(target, batch)) return;
  batch->target = target;
  batch->next = nullptr;
  (newest_ == nullptr ? newest_ : oldest_->next) = batch;
  oldest_ = batch;
}

void Runner::renew(Step* step) {
  if (credit_ != nullptr) return;
  step->add_activity();
  credit_ = step;
}

bool Runner::sent_elsewhere(EngineActor* target, Batch* batch) {
  if (policy_ == HandOff::kDirect) [[likely]] {
    if (batch->step == step_ || step_ == nullptr) [[likely]]
      return false;
    target->deliver(batch);
    return true;
  }
  if (policy_ == HandOff::kMailbox) {
    target->mail(batch, batch->step == step_ ? worker_ : nullptr);
  } else if (coin()) {
    coin() ? target->mail(batch, nullptr) : target->deliver(batch);
  } else if (batch->step == step_ || step_ == nullptr) {
    return false;
  } else {
    target->deliver(batch);
  }
  return true;
}

void Runner::post_counted(EngineActor* target, Batch* batch) {
  if (!is_own(batch) && sent_elsewhere(target, batch)) return;
  push(target, batch);
}

void Runner::find_trace(Trace& trace) {
  trace_buffer_ = &trace.buffer();
  trace_ = &trace;
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
  Batch* from_oldest = nullptr;
  while (newest_ != nullptr) {
    Batch* const batch = std::exchange(newest_, newest_->next);
    batch->next = std::exchange(from_oldest, batch);
  }
  while (from_oldest != nullptr) {
    Batch* const batch = std::exchange(from_oldest, from_oldest->next);
    batch->target->deliver(batch);
  }
  if (worker_ != nullptr) worker_->publish();
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

Runner::Clock::time_point Runner::started() {
  return worker_ != nullptr ? worker_->slice_start() : started_;
}

bool Runner::over_quantum() {
  if (--hops_until_check_ > 0) return false;
  hops_until_check_ = hops_per_clock_read(lent(), recall_ != nullptr);
  const bool is_recalled =
      recall_ != nullptr && recall_->load(std::memory_order_relaxed) > 0;
  return Clock::now() - started() > (is_recalled ? kRecalledQuantum : quantum_);
}

inline bool Runner::must_yield_at(Clock::time_point now) {
  if (now - started() <= quantum_) return false;
  return worker_ == nullptr || !worker_->renew_slice();
}

bool Runner::must_yield() { return must_yield_at(Clock::now()); }

bool Runner::must_yield_between() {
  if (looks_left_out_ > 0) {
    --looks_left_out_;
    return false;
  }
  const auto now = Clock::now();
  looks_left_out_ = now - looked_ < kQuickFirings ? kLooksLeftOut : 0;
  looked_ = now;
  return must_yield_at(now);
}

bool Runner::may_stay() const {
  return worker_ != nullptr && !worker_->is_wanted();
}

void Runner::drain() {
  while (newest_ != nullptr) {
    // A single batch continues here if no other actor waits.
    if (over_quantum() &&
        (lent() || newest_->next != nullptr || !worker_->renew_slice())) {
      flush();
      return;
    }
    Batch* const batch = std::exchange(newest_, newest_->next);
    batch->target->hand_off(batch, *this);
  }
}

}  // namespace tagflow::actors
