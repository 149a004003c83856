#include "net/serving/task_pool.h"

#include <utility>

#include "graph/fault.h"

namespace tagflow::net::serving {

Result<std::unique_ptr<TaskPool>> TaskPool::create(size_t threads) {
  return guarded("serving", [&]() -> Result<std::unique_ptr<TaskPool>> {
    std::unique_ptr<TaskPool> pool(new TaskPool());
    for (size_t i = 0; i < threads; ++i)
      pool->threads_.emplace_back([self = pool.get()] { self->serve(); });
    return pool;
  });
}

TaskPool::~TaskPool() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void TaskPool::post(std::function<void()> f) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(f));
  changed_.notify_one();
}

void TaskPool::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    static_cast<void>(guarded("serving", task));
    task = {};
    lock.lock();
  }
}

}  // namespace tagflow::net::serving
