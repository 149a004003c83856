#include "actors/checkpoint/alone_at_border.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "actors/shared_state.h"

namespace tagflow::actors {

class AloneAtBorder::Waiter final : public devices::StateLock::Waiter {
 public:
  void on_granted() override {
    std::lock_guard lock(mutex_);
    granted_ = true;
    changed_.notify_all();
  }
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return granted_; });
    // The granting thread claims it first.
    if (granted_ || claim()) return granted_;
    changed_.wait(lock, [this] { return granted_; });
    return true;
  }

 protected:
  void on_cancel() override {}

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool granted_ = false;
};

AloneAtBorder::~AloneAtBorder() {
  if (!has_it_) return;
  make_room(false);
  border_.unlock(devices::StateLock::Mode::kExclusive);
}

bool AloneAtBorder::wait(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  milliseconds patience(100);
  while (std::chrono::steady_clock::now() < deadline) {
    if (wait_once(patience)) return true;
    // The steps that hold the border may wait for those behind this one.
    std::this_thread::sleep_for(milliseconds(10));
    patience = std::min(2 * patience, milliseconds(2000));
  }
  return false;
}

bool AloneAtBorder::wait_once(std::chrono::milliseconds time) {
  const auto waiter = std::make_shared<Waiter>();
  actors_.clear();
  state_.resources().for_each(
      [this](const devices::ResourceKey&, devices::StateObject& object) {
        if (auto* const actor = dynamic_cast<devices::StateActor*>(&object))
          actors_.emplace_back(actor);
      });
  // Nothing throws from here on: the border would stay with the waiter.
  border_.wait(devices::StateLock::Mode::kExclusive, waiter);
  // Steps from here on wait behind it, so that no more than those before it
  // offer elements.
  make_room(true);
  has_it_ = waiter->wait_for(time);
  if (has_it_) return true;
  make_room(false);
  border_.pass_over();
  return false;
}

void AloneAtBorder::make_room(bool on) noexcept {
  for (const auto& actor : actors_) actor->make_room(on);
}

}  // namespace tagflow::actors
