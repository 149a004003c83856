#include "actors/timer.h"

#include "actors/step.h"

namespace tagflow::actors {
namespace {

thread_local bool is_timer_thread = false;

}  // namespace

Timer::~Timer() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Timer::is_timer() { return is_timer_thread; }

void Timer::watch(Step& step) {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  Entry& entry = step.deadline_entry;
  entry.at = step.deadline;
  entry.step = &step;
  entry.timer = this;
  waiting_.insert(entry);
  if (&*waiting_.begin() == &entry) changed_.notify_one();
}

void Timer::forget(Entry& entry) {
  if (entry.timer == nullptr) return;
  std::lock_guard lock(entry.timer->mutex_);
  if (entry.is_linked())
    entry.timer->waiting_.erase(
        boost::intrusive::multiset<Entry>::s_iterator_to(entry));
}

void Timer::call_first(std::unique_lock<std::mutex>& lock) {
  Entry& entry = *waiting_.begin();
  waiting_.erase(waiting_.begin());
  // Null where the step is being destroyed at the moment, which waits for the
  // mutex.
  std::shared_ptr<Step> step = entry.step->weak_from_this().lock();
  if (step == nullptr) return;
  const bool expired = entry.expired;
  if (!expired) {
    entry.expired = true;
    entry.at += Step::kGrace;
    waiting_.insert(entry);
  }
  lock.unlock();
  expired ? step->give_up() : step->expire();
  step.reset();
  lock.lock();
}

void Timer::run() {
  is_timer_thread = true;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
    } else if (const auto first = waiting_.begin()->at;
               std::chrono::steady_clock::now() < first) {
      changed_.wait_until(lock, first);
    } else {
      call_first(lock);
    }
  }
}

}  // namespace tagflow::actors
