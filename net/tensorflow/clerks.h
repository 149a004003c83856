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
  // Does what waits, and then ends.
  ~Clerks();
  Clerks(const Clerks&) = delete;
  Clerks& operator=(const Clerks&) = delete;

  // Has it done, in the order of the calls. It throws nothing.
  // ResourceExhausted if too much waits; then it is not done.
  Status post(Work work);

 private:
  explicit Clerks(size_t most_waiting) : most_waiting_(most_waiting) {}
  void serve();

  const size_t most_waiting_;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tagflow::net
