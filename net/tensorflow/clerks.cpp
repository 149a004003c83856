#include "net/tensorflow/clerks.h"

#include <utility>

#include "graph/fault.h"

namespace tagflow::net {

Result<std::unique_ptr<Clerks>> Clerks::hire(size_t threads,
                                             size_t most_waiting) {
  return guarded("service", [&]() -> Result<std::unique_ptr<Clerks>> {
    std::unique_ptr<Clerks> clerks(new Clerks(most_waiting));
    for (size_t i = 0; i < threads; ++i)
      clerks->threads_.emplace_back([all = clerks.get()] { all->serve(); });
    return clerks;
  });
}

Clerks::~Clerks() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status Clerks::post(Work work) {
  return guarded("service", [&]() -> Status {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= most_waiting_)
        return error(Code::kResourceExhausted,
                     "[service] {} requests wait to be prepared, the limit",
                     waiting_.size());
      waiting_.push_back(std::move(work));
    }
    changed_.notify_one();
    return {};
  });
}

void Clerks::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace tagflow::net
