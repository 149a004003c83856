#include "actors/runtime/scheduler.h"

#include <pthread.h>
#include <sched.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/logger.hpp>
#include <utility>

#include "actors/runtime/annotated_actor.h"
#include "actors/runtime/pause.h"

namespace tagflow::actors {
namespace {

thread_local Worker* current_worker = nullptr;

// How long an idle worker polls for work before it sleeps: about twice the time
// of a waking.
constexpr std::chrono::microseconds kLook{100};
constexpr int kLooksPerClockRead = 64;

}  // namespace

Scheduler::Scheduler(caf::actor_system& system)
    : abstract_coordinator(system) {}

caf::actor_system::module* Scheduler::make(caf::actor_system& system,
                                           caf::detail::type_list<>) {
  return new Scheduler(system);
}

Worker* Scheduler::this_worker() { return current_worker; }

void Scheduler::append(Queue& queue, Ready& ready) {
  ready.next = nullptr;
  (queue.last == nullptr ? queue.first : queue.last->next) = &ready;
  queue.last = &ready;
}

void Scheduler::enqueue(caf::resumable* work) {
  if (auto* known = dynamic_cast<HasReady*>(work))
    return enqueue(known->ready());
  auto* ready = new Ready(work);
  ready->owned = true;
  enqueue(*ready);
}

void Scheduler::enqueue(Ready& ready) noexcept {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    append(ready.urgent ? urgent_ : normal_, ready);
    waiting_.fetch_add(1);
    // A polling worker will see the work; or it has stopped polling, and then
    // it gets the mutex after us.
    wake = sleeping_ > 0 && looking_.load() == 0;
    // Notifies under the mutex: the enqueued work may destroy the scheduler, so
    // it must not be accessed afterwards.
    if (wake) woken_.notify_one();
  }
}

Ready* Scheduler::take_locked() {
  const bool take_urgent =
      order_.take_urgent(urgent_.first != nullptr, normal_.first != nullptr);
  Queue& queue = take_urgent ? urgent_ : normal_;
  Ready* ready = queue.first;
  if (ready == nullptr) return nullptr;
  queue.first = ready->next;
  if (queue.first == nullptr) queue.last = nullptr;
  waiting_.fetch_sub(1);
  return ready;
}

bool Scheduler::look_for_work() {
  const auto end = Clock::now() + kLook;
  do {
    for (int look = 0; look < kLooksPerClockRead; ++look) {
      if (has_waiting()) return true;
      pause_briefly();
    }
  } while (Clock::now() < end);
  return false;
}

Ready* Scheduler::wait() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (Ready* ready = take_locked()) {
      // One worker is woken at a time: it wakes the next if there is more work.
      if (has_waiting() && sleeping_ > 0 && looking_.load() == 0)
        woken_.notify_one();
      return ready;
    }
    // Stops only when the queue is empty: it may still contain actors that are
    // asked to end, since ending them otherwise needs memory.
    if (stop_) return nullptr;
    if (polls_.load(std::memory_order_relaxed)) {
      looking_.fetch_add(1);
      lock.unlock();
      const bool found = look_for_work();
      lock.lock();
      looking_.fetch_sub(1);
      if (found || has_waiting() || stop_) continue;
    }
    ++sleeping_;
    woken_.wait(lock);
    --sleeping_;
  }
}

void Scheduler::start() {
  // No utility actors: the engine does not print through CAF.
  try {
    for (size_t i = 0; i < num_workers(); ++i)
      workers_.push_back(std::make_unique<Worker>(system(), *this, i));
    for (const auto& worker : workers_) start(*worker);
  } catch (...) {
    // CAF cannot destroy an incomplete system: so this one is completed, and
    // ended.
    failure_ = std::current_exception();
  }
}

void Scheduler::check_started() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void Scheduler::start(Worker& worker) {
  worker.thread_ = std::thread([&worker] {
    worker.system().thread_started();
    current_worker = &worker;
    worker.run();
    current_worker = nullptr;
    worker.system().thread_terminates();
  });
}

void Scheduler::pin(const std::vector<int>& cores) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[i], &set);
    pthread_setaffinity_np(workers_[i]->thread_.native_handle(), sizeof(set),
                           &set);
  }
}

void Scheduler::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    woken_.notify_all();
  }
  for (const auto& worker : workers_)
    if (worker->thread_.joinable()) worker->thread_.join();
  for (const auto& worker : workers_) worker->publish();
  drop_all();
}

void Scheduler::drop_all() {
  for (;;) {
    Ready* ready = nullptr;
    {
      std::lock_guard lock(mutex_);
      ready = take_locked();
    }
    if (ready == nullptr) return;
    caf::resumable* const work = ready->work;
    if (ready->owned) delete ready;
    cleanup_and_release(work);
  }
}

Worker::Worker(caf::actor_system& system, Scheduler& scheduler, size_t number)
    : execution_unit(&system), scheduler_(scheduler), number_(number) {}

void Worker::exec_later(caf::resumable* work) { scheduler_.enqueue(work); }

void Worker::run_next(Ready& ready) {
  publish();
  next_ = &ready;
}

void Worker::publish() {
  if (next_ != nullptr) scheduler_.enqueue(*std::exchange(next_, nullptr));
}

bool Worker::renew_slice() {
  if (scheduler_.has_waiting()) return false;
  slice_start_ = Scheduler::Clock::now();
  return true;
}

Ready* Worker::next() {
  if (next_ != nullptr) {
    if (Scheduler::Clock::now() - slice_start_ < Scheduler::kQuantum)
      return std::exchange(next_, nullptr);
    publish();
  }
  Ready* const ready = scheduler_.wait();
  slice_start_ = Scheduler::Clock::now();
  return ready;
}

void Worker::run() {
  const size_t throughput = scheduler_.max_throughput();
  while (Ready* ready = next()) {
    caf::resumable* const work = ready->work;
    // Unless the work must be resumed, another thread may have enqueued it
    // already.
    std::unique_ptr<Ready> owned(ready->owned ? ready : nullptr);
    switch (work->resume(this, throughput)) {
      case caf::resumable::resume_later:
        (void)owned.release();
        scheduler_.enqueue(*ready);
        break;
      case caf::resumable::awaiting_message:
      case caf::resumable::done:
        work->intrusive_ptr_release_impl();
        break;
      case caf::resumable::shutdown_execution_unit:
        work->intrusive_ptr_release_impl();
        return;
    }
  }
}

}  // namespace tagflow::actors
