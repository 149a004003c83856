// Timer: the thread that looks after the deadlines of asynchronous runs.
#pragma once

#include <boost/intrusive/set.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace tagflow::actors {

class Step;

// Thread-safe.
class Timer {
 public:
  // A deadline, in its step: to wait takes no memory.
  struct Entry : boost::intrusive::set_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::safe_link>> {
    std::chrono::steady_clock::time_point at;
    Step* step = nullptr;
    bool expired = false;  // its grace is what it waits for
    Timer* timer = nullptr;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.at < b.at;
    }
  };

  Timer() = default;
  // REQUIRES: nothing is watched.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls step.expire() when its deadline passes, and give_up() after the
  // grace, if it is not forgotten before. The first call starts the thread,
  // which may throw. REQUIRES: a shared pointer owns the step.
  void watch(Step& step);
  // Takes constant time but for a search among those that wait. The step may
  // still be called, for as long as somebody holds it.
  static void forget(Entry& entry);
  // Whether the calling thread is a timer's.
  static bool is_timer();

 private:
  void run();
  void call_first(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  boost::intrusive::multiset<Entry> waiting_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tagflow::actors
