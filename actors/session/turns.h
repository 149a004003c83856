// Turns: work that is done by one thread at a time, for as long as its run may
// wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "graph/budget.h"
#include "graph/status.h"

namespace tagflow::actors {

// A mutex whose wait looks at the budget of a run. Thread-safe.
class Turns {
 public:
  struct End {
    void operator()(Turns* turns) const {
      const std::lock_guard lock(turns->mutex_);
      turns->is_taken_ = false;
      turns->changed_.notify_one();
    }
  };
  // Lasts as long as this, which any thread may end.
  using Turn = std::unique_ptr<Turns, End>;

  // Waits for the turn. Errors of the budget, which may be null. The budget is
  // asked without a lock: whoever cancels may have locks of its own.
  Result<Turn> begin(graph::Budget* budget) {
    std::unique_lock lock(mutex_);
    while (is_taken_) {
      if (budget != nullptr) {
        lock.unlock();
        TAGFLOW_RETURN_IF_ERROR(budget->look());
        lock.lock();
      }
      constexpr std::chrono::milliseconds kBetweenLooks(10);
      changed_.wait_for(lock, kBetweenLooks, [this] { return !is_taken_; });
    }
    is_taken_ = true;
    return Turn(this);
  }

 private:
  std::mutex mutex_;  // guards the below; held briefly
  std::condition_variable changed_;
  bool is_taken_ = false;
};

}  // namespace tagflow::actors
