// Clerks: a few threads for what takes long and is not a run.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/status.h"

namespace tagflow::net {

// They compile, extend graphs and close sessions, which may take seconds, so
// that the threads of a door, which all clients share, do not. Thread-safe.
class Clerks {
 public:
  using Work = std::function<void()>;

  // REQUIRES: both > 0. ResourceExhausted if no thread can be created.
  static Result<std::unique_ptr<Clerks>> hire(size_t threads,
                                              size_t most_waiting);
  ~Clerks() { end(); }
  Clerks(const Clerks&) = delete;
  Clerks& operator=(const Clerks&) = delete;

  // Has it done, in the order of the calls. ResourceExhausted if too much
  // waits, and Cancelled after end(); then it is not done.
  Status post(Work work);
  // The same for what must be done: no limit refuses it.
  Status post_anyway(Work work);
  // Whether what is posted now is begun at once.
  bool has_idle() const;
  // Does what waits, and then ends the threads. REQUIRES: not on one of them.
  void end();

 private:
  explicit Clerks(size_t most_waiting) : most_waiting_(most_waiting) {}
  Status add(Work work, size_t most_waiting);
  void serve();

  const size_t most_waiting_;
  mutable std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  size_t idle_ = 0;  // threads
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tagflow::net
