#include "actors/reaper.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace tagflow::actors {
namespace {

class Reaper {
 public:
  ~Reaper() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void add(std::function<void()> destroy) {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    waiting_.push_back(std::move(destroy));
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

}  // namespace

void destroy_elsewhere(std::function<void()> destroy) noexcept {
  static Reaper reaper;
  try {
    reaper.add(std::move(destroy));
  } catch (...) {
    // Better lost than a thread that waits for itself.
  }
}

}  // namespace tagflow::actors
