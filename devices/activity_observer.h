// Passes an accelerator's activity to its observer, if there is one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/device.h"

namespace tagflow::devices {

// Without an observer it costs one load. Thread-safe.
class ActivityObserver {
 public:
  void set(Accelerator::Observer observer) {
    const std::lock_guard lock(mutex_);
    is_set_.store(bool(observer), std::memory_order_release);
    observer_ =
        observer
            ? std::make_shared<const Accelerator::Observer>(std::move(observer))
            : nullptr;
  }
  bool is_set() const { return is_set_.load(std::memory_order_acquire); }
  void tell(const AcceleratorActivity& activity) const {
    if (!is_set()) return;
    std::shared_ptr<const Accelerator::Observer> observer;
    {
      const std::lock_guard lock(mutex_);
      observer = observer_;
    }
    if (observer != nullptr) (*observer)(activity);
  }

 private:
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;  // guards the below; held briefly
  std::shared_ptr<const Accelerator::Observer> observer_;
};

}  // namespace tagflow::devices
