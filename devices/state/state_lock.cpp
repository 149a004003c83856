#include "devices/state/state_lock.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace tagflow::devices {

void StateLock::wait(Mode mode, std::shared_ptr<Waiter> waiter) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({mode, std::move(waiter)});
    word_.fetch_or(kWaited, std::memory_order_relaxed);
  }
  // The holder may have released it before the mark was set.
  grant();
}

// Only this function takes the lock while the mark is set.
void StateLock::grant() noexcept {
  for (;;) {
    std::shared_ptr<Waiter> waiter;
    {
      std::lock_guard lock(mutex_);
      for (;;) {
        if (queue_.empty()) {
          word_.fetch_and(~kWaited, std::memory_order_relaxed);
          return;
        }
        const Mode mode = queue_.front().mode;
        if (!queue_.front().waiter->is_open()) {
          queue_.pop_front();
          continue;
        }
        if (!take(mode, mode == Mode::kShared ? kWriter : kWriter | kReaders))
          return;
        waiter = std::move(queue_.front().waiter);
        queue_.pop_front();
        if (queue_.empty())
          word_.fetch_and(~kWaited, std::memory_order_relaxed);
        if (waiter->claim()) break;
        // It was cancelled.
        word_.fetch_sub(one(mode), std::memory_order_release);
      }
    }
    waiter->on_granted();
  }
}

StateClaim::StateClaim(StateClaim&& other) noexcept
    : parts_(std::move(other.parts_)), taken_(std::exchange(other.taken_, 0)) {
  other.parts_.clear();
}

StateClaim& StateClaim::operator=(StateClaim&& other) noexcept {
  release();
  parts_ = std::move(other.parts_);
  taken_ = std::exchange(other.taken_, 0);
  other.parts_.clear();
  return *this;
}

void StateClaim::add_another(StateLock& lock, Mode mode, Resource& owner) {
  const auto place =
      std::ranges::lower_bound(parts_, &lock, std::less<>(), &Part::lock);
  if (place != parts_.end() && place->lock == &lock) {
    if (mode == Mode::kExclusive) place->mode = mode;
    return;
  }
  parts_.insert(place, Part{&lock, mode, &owner, {}});
}

void StateClaim::keep_owners() noexcept {
  for (Part& part : parts_) part.kept = Ref<Resource>(part.owner);
}

namespace {

class BlockedThread final : public StateLock::Waiter {
 public:
  void on_granted() override { end(true); }
  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
    return granted_;
  }

 protected:
  void on_cancel() override { end(false); }

 private:
  void end(bool granted) {
    std::lock_guard lock(mutex_);
    over_ = true;
    granted_ = granted;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  bool granted_ = false;
};

}  // namespace

bool StateClaim::take_blocking(CancelList* hooks) {
  while (!take()) {
    const auto waiter = std::make_shared<BlockedThread>();
    if (hooks != nullptr && !hooks->add(waiter)) return false;
    const Part& awaited = parts_[taken_];
    awaited.wait(waiter);
    if (!waiter->wait()) {
      awaited.lock->pass_over();
      return false;
    }
    note_granted();
  }
  return true;
}

}  // namespace tagflow::devices
