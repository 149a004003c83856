#include "devices/stream/stream.h"

#include <chrono>
#include <utility>

#include "graph/fault.h"

namespace tagflow::devices {
namespace {

using Clock = std::chrono::steady_clock;

// A few times the time that waking a thread takes.
constexpr std::chrono::microseconds kSpin{20};

template <class Condition>
bool spin_until(Condition condition) {
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    if (condition()) return true;
    std::this_thread::yield();  // other threads may have work
  } while (Clock::now() < end);
  return condition();
}

}  // namespace

void StreamEvent::wait() const {
  if (stream_ != nullptr) stream_->wait_for(ticket_);
}

Stream::Stream() : thread_([this] { work(); }) {}

Stream::~Stream() {
  stop();
  join();
}

StreamEvent Stream::enqueue(std::unique_ptr<Task> task) noexcept {
  std::unique_lock lock(mutex_);
  if (gone_) {
    lock.unlock();
    run_task(std::move(task), Fate::kAbandon);
    return {};
  }
  Task* const added = task.get();
  (last_ == nullptr ? first_ : last_->next_) = std::move(task);
  last_ = added;
  const uint64_t ticket = enqueued_.load(std::memory_order_relaxed) + 1;
  enqueued_.store(ticket, std::memory_order_release);
  const bool wake = asleep_;
  lock.unlock();
  if (wake) wakes_.notify_one();
  return {this, ticket};
}

void Stream::run_task(std::unique_ptr<Task> task, Fate fate) {
  // The error cannot be assigned to an answer here; later tasks must still run.
  (void)guarded([&] { task->run(fate); }).ok();
}

void Stream::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_one();
}

void Stream::join() {
  if (thread_.joinable()) thread_.join();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (first_ == nullptr && !stopping_) rest(lock);
    if (first_ == nullptr) break;
    std::unique_ptr<Task> task = std::move(first_);
    first_ = std::move(task->next_);
    if (first_ == nullptr) last_ = nullptr;
    const Fate fate = stopping_ ? Fate::kAbandon : Fate::kRun;
    lock.unlock();
    run_task(std::move(task), fate);
    lock.lock();
    ended_.fetch_add(1, std::memory_order_release);
    if (waiters_ > 0) passes_.notify_all();
  }
  gone_ = true;
}

void Stream::rest(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const uint64_t ended = ended_.load(std::memory_order_relaxed);
  spin_until([&] { return enqueued_.load(std::memory_order_acquire) > ended; });
  lock.lock();
  asleep_ = true;
  wakes_.wait(lock, [&] { return first_ != nullptr || stopping_; });
  asleep_ = false;
}

void Stream::wait_for(uint64_t ticket) {
  if (spin_until([&] { return has_ended(ticket); })) return;
  std::unique_lock lock(mutex_);
  ++waiters_;
  passes_.wait(lock, [&] { return has_ended(ticket); });
  --waiters_;
}

}  // namespace tagflow::devices
