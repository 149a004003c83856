#include "actors/runtime/reaper.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace tagflow::actors {
namespace {

class Reaper {
 public:
  // Objects that are added from now on are leaked.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void add(std::function<void()> destroy) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(destroy));
    if (stop_) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> destroy = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      destroy();
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

// A worker may release an object while the process is ending: so the reaper is
// never destroyed, and only its thread ends. The child of a fork() has none of
// its parent's threads, and gets a reaper of its own.
Reaper& process_reaper() {
  static Reaper* reaper = [] {
    pthread_atfork(nullptr, nullptr, [] { reaper = new Reaper; });
    return new Reaper;
  }();
  static const struct AtExit {
    ~AtExit() { reaper->stop(); }
  } at_exit;
  return *reaper;
}

}  // namespace

void destroy_elsewhere(std::function<void()> destroy) noexcept {
  try {
    process_reaper().add(std::move(destroy));
  } catch (...) {
    // A leak is better than a thread that waits for itself.
  }
}

}  // namespace tagflow::actors
