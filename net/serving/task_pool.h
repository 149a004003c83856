// TaskPool: a few threads for work that a thread of connections must not do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/status.h"

namespace tagflow::net::serving {

// Thread-safe.
class TaskPool {
 public:
  // ResourceExhausted without threads. REQUIRES: threads > 0
  static Result<std::unique_ptr<TaskPool>> create(size_t threads);
  // Waits for the tasks that run or wait.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // Has f called on a thread of the pool, in the order of the calls. What it
  // throws is dropped.
  void post(std::function<void()> f);

 private:
  TaskPool() = default;
  void serve();

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tagflow::net::serving
