// Timer: the thread that watches the deadlines of runs, and runs that are
// stopped.
#pragma once

#include <atomic>
#include <boost/intrusive/set.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tagflow::actors {

class Step;

// Thread-safe.
class Timer {
 public:
  // A deadline. It is a member of its step, so that a wait allocates nothing.
  struct Entry : boost::intrusive::set_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::safe_link>> {
    std::chrono::steady_clock::time_point at;
    Step* step = nullptr;
    bool expired = false;                // its grace period runs
    std::atomic<Timer*> timer{nullptr};  // once it is watched
    // For steps whose answers must be delivered.
    std::shared_ptr<Step> answered;
    Entry* next = nullptr;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.at < b.at;
    }
  };

  Timer() = default;
  // REQUIRES: nothing is watched.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls step.expire() when its deadline passes, and give_up() after the grace
  // period, unless forget() is called before. The first call starts the thread,
  // which may throw. REQUIRES: a shared pointer owns the step.
  void watch(Step& step);
  // Calls step.give_up() after the grace period, unless forget() is called
  // before. Otherwise like watch().
  void give_grace(Step& step);
  // Removes the entry, in constant time once it is found. The step may still be
  // called as long as it has an owner.
  static void forget(Entry& entry);
  // Delivers the step's answer on another thread: it calls code of the user,
  // which must not delay the deadlines of other steps, nor, up to a limit,
  // their answers. REQUIRES: this is this_clock().
  void deliver(Step& step);
  // Whether the calling thread belongs to a timer.
  static bool is_timer();
  // The timer that calls expire() and give_up() on this thread, or null.
  static Timer* this_clock();

 private:
  static constexpr auto kAwake = std::chrono::steady_clock::time_point::min();

  void run();
  void call_first(std::unique_lock<std::mutex>& lock);
  // REQUIRES: the mutex is held, the entry is not linked.
  void insert(Entry& entry);
  void run_answers();
  // REQUIRES: the mutex is held.
  void start_answering();

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  boost::intrusive::multiset<Entry> waiting_;
  // When the thread looks at the entries next, at the latest. A run usually
  // ends long before its deadline, and does not wake the thread for that.
  std::chrono::steady_clock::time_point wakes_at_ = kAwake;
  bool stop_ = false;
  std::thread thread_;
  Entry* first_answer_ = nullptr;  // first come, first served
  Entry** last_answer_ = &first_answer_;
  std::condition_variable answers_changed_;
  std::vector<std::thread> answering_;
  // The number of idle answering threads minus the number of pending answers.
  ptrdiff_t num_spare_ = 0;
};

}  // namespace tagflow::actors
