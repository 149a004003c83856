#include "apps/shared/runs/stall_watch.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace tagflow::apps {

StallWatch::StallWatch(actors::Session& session, actors::CancelToken token,
                       bool between_runs)
    : session_(session),
      token_(std::move(token)),
      least_answers_(between_runs ? 10 : 1) {
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // Then the run's time-out ends it.
  }
}

StallWatch::~StallWatch() {
  {
    std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void StallWatch::watch() {
  constexpr auto kPeriod = std::chrono::milliseconds(100);
  std::optional<std::string> last;
  int answers = 0;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [this] { return is_over_; })) {
    lock.unlock();
    std::optional<std::string> stall;
    if (!is_idle_) stall = session_.stalled();
    lock.lock();
    answers = stall && stall == last ? answers + 1 : 1;
    last = stall;
    if (!stall || answers < least_answers_) continue;
    stall_ = std::move(stall);
    lock.unlock();
    token_.cancel();
    return;
  }
}

Status StallWatch::status_of(Status status) const {
  std::lock_guard lock(mutex_);
  if (!stall_ || status.code() != Code::kCancelled) return status;
  return error(Code::kDeadlock, "{}", *stall_);
}

}  // namespace tagflow::apps
