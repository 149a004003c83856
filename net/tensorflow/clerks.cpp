#include "net/tensorflow/clerks.h"

#include <limits>
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

void Clerks::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Status Clerks::post(Work work) { return add(std::move(work), most_waiting_); }

Status Clerks::post_anyway(Work work) {
  return add(std::move(work), std::numeric_limits<size_t>::max());
}

bool Clerks::has_idle() const {
  const std::lock_guard lock(mutex_);
  return idle_ > waiting_.size();
}

Status Clerks::add(Work work, size_t most_waiting) {
  return guarded("service", [&]() -> Status {
    {
      const std::lock_guard lock(mutex_);
      if (is_over_)
        return error(Code::kCancelled, "[service] the service ends");
      if (waiting_.size() >= most_waiting)
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
    ++idle_;
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    // Whoever posted it answers its faults; this is what it could not answer.
    static_cast<void>(guarded(work));
    work = nullptr;
    lock.lock();
  }
}

}  // namespace tagflow::net
