#include "actors/runtime/timer.h"

#include "actors/runtime/step.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

// A `done` that blocks occupies one of these threads.
constexpr size_t kMostAnswering = 16;

thread_local bool is_timer_thread = false;
thread_local Timer* clock_of_thread = nullptr;

}  // namespace

Timer::~Timer() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  answers_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (std::thread& thread : answering_) thread.join();
}

bool Timer::is_timer() { return is_timer_thread; }
Timer* Timer::this_clock() { return clock_of_thread; }

void Timer::insert(Entry& entry) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  waiting_.insert(entry);
  if (entry.at < wakes_at_) changed_.notify_one();
}

void Timer::watch(Step& step) {
  std::lock_guard lock(mutex_);
  Entry& entry = step.deadline_entry;
  if (entry.expired) return;  // it was cancelled, and its grace period runs
  entry.at = step.deadline;
  entry.step = &step;
  entry.timer = this;
  insert(entry);
}

void Timer::give_grace(Step& step) {
  std::lock_guard lock(mutex_);
  Entry& entry = step.deadline_entry;
  if (entry.is_linked())
    waiting_.erase(boost::intrusive::multiset<Entry>::s_iterator_to(entry));
  entry.at = std::chrono::steady_clock::now() + step.grace.load();
  entry.expired = true;
  entry.step = &step;
  entry.timer = this;
  insert(entry);
}

void Timer::forget(Entry& entry) {
  Timer* const timer = entry.timer.load();
  if (timer == nullptr) return;
  std::lock_guard lock(timer->mutex_);
  if (entry.is_linked())
    timer->waiting_.erase(
        boost::intrusive::multiset<Entry>::s_iterator_to(entry));
}

void Timer::call_first(std::unique_lock<std::mutex>& lock) {
  Entry& entry = *waiting_.begin();
  waiting_.erase(waiting_.begin());
  // Null if the step's destructor runs, which waits for the mutex.
  std::shared_ptr<Step> step = entry.step->weak_from_this().lock();
  if (step == nullptr) return;
  const bool expired = entry.expired;
  if (!expired) {
    entry.expired = true;
    entry.at += entry.step->grace.load();
    waiting_.insert(entry);
  }
  lock.unlock();
  // The timer continues after an exception.
  (void)guarded([&] { expired ? step->give_up() : step->expire(); });
  step.reset();
  lock.lock();
}

void Timer::deliver(Step& step) {
  {
    std::lock_guard lock(mutex_);
    // With at least one thread, another one only improves speed.
    if (num_spare_ <= 0) (void)guarded([&] { start_answering(); });
    if (!answering_.empty()) {
      Entry& entry = step.deadline_entry;
      entry.answered = step.shared_from_this();
      *last_answer_ = &entry;
      last_answer_ = &entry.next;
      --num_spare_;
      answers_changed_.notify_one();
      return;
    }
  }
  step.deliver_answer();
}

void Timer::start_answering() {
  if (answering_.size() == kMostAnswering) return;
  answering_.reserve(kMostAnswering);
  answering_.emplace_back([this] { run_answers(); });
  ++num_spare_;
}

void Timer::run_answers() {
  is_timer_thread = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    answers_changed_.wait(lock,
                          [&] { return stop_ || first_answer_ != nullptr; });
    if (first_answer_ == nullptr) return;
    Entry& entry = *first_answer_;
    first_answer_ = entry.next;
    if (first_answer_ == nullptr) last_answer_ = &first_answer_;
    std::shared_ptr<Step> step = std::move(entry.answered);
    lock.unlock();
    step->deliver_answer();
    step.reset();
    lock.lock();
    ++num_spare_;
  }
}

void Timer::run() {
  is_timer_thread = true;
  clock_of_thread = this;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (waiting_.empty()) {
      wakes_at_ = std::chrono::steady_clock::time_point::max();
      changed_.wait(lock);
      wakes_at_ = kAwake;
    } else if (const auto first = waiting_.begin()->at;
               std::chrono::steady_clock::now() < first) {
      wakes_at_ = first;
      changed_.wait_until(lock, first);
      wakes_at_ = kAwake;
    } else {
      call_first(lock);
    }
  }
}

}  // namespace tagflow::actors
