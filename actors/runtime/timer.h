// Timer: the thread that looks after the deadlines of asynchronous runs, and
// after runs that are stopped.
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
  // A deadline, in its step: to wait takes no memory.
  struct Entry : boost::intrusive::set_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::safe_link>> {
    std::chrono::steady_clock::time_point at;
    Step* step = nullptr;
    bool expired = false;                // its grace is what it waits for
    std::atomic<Timer*> timer{nullptr};  // once it is watched
    // Of those whose answers are to be delivered.
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

  // Calls step.expire() when its deadline passes, and give_up() after the
  // grace, if it is not forgotten before. The first call starts the thread,
  // which may throw. REQUIRES: a shared pointer owns the step.
  void watch(Step& step);
  // Calls step.give_up() after the grace, if it is not forgotten before. As
  // watch() otherwise.
  void give_grace(Step& step);
  // Takes constant time but for a search among those that wait. The step may
  // still be called, for as long as somebody holds it.
  static void forget(Entry& entry);
  // Has the step's answer delivered by another thread: what is called with it
  // is the user's, and must not hold up the time of others, nor, up to a limit,
  // their answers. REQUIRES: this is this_clock().
  void deliver(Step& step);
  // Whether the calling thread is a timer's.
  static bool is_timer();
  // The timer that calls on this thread expire() and give_up(), or null.
  static Timer* this_clock();

 private:
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
  bool stop_ = false;
  std::thread thread_;
  Entry* first_answer_ = nullptr;  // first come, first served
  Entry** last_answer_ = &first_answer_;
  std::condition_variable answers_changed_;
  std::vector<std::thread> answering_;
  // Free ones of them less the answers they are to deliver.
  ptrdiff_t num_spare_ = 0;
};

}  // namespace tagflow::actors
