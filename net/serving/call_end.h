// CallEnd: says that a client waits no longer.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace tagflow::net::serving {

// Thread-safe.
class CallEnd {
 public:
  // Calls what waits for it, on this thread. The caller holds no lock that it
  // takes.
  void cancel() {
    std::function<void()> f;
    {
      const std::lock_guard lock(mutex_);
      is_cancelled_ = true;
      f = std::exchange(on_cancel_, {});
    }
    if (f) f();
  }
  bool is_cancelled() const {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }
  // Has f called by cancel(), instead of what waited before. False if that was
  // called already: then f is not.
  bool on_cancel(std::function<void()> f) {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) return false;
    on_cancel_ = std::move(f);
    return true;
  }

 private:
  mutable std::mutex mutex_;  // guards the below
  bool is_cancelled_ = false;
  std::function<void()> on_cancel_;
};

}  // namespace tagflow::net::serving
