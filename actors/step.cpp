#include "actors/step.h"

#include <new>
#include <utility>

namespace tagflow::actors {

Status status_of(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return tagflow::error(Code::kResourceExhausted, "out of memory");
  return tagflow::error(Code::kInternal, "unexpected exception: {}",
                        thrown.what());
}

Status run_kernel(const devices::Kernel& kernel,
                  devices::KernelContext& context) {
  try {
    return kernel.compute(context);
  } catch (const std::exception& thrown) {
    return status_of(thrown).with_prefix(
        fmt::format("[{}] ", context.node().op()));
  }
}

Step::Step(uint64_t id, size_t fetch_count) : fetches(fetch_count) {
  info.step_id = id;
  info.cancelled = &cancelled_;
}

void Step::fail(Status status) {
  std::lock_guard lock(mutex_);
  fail_locked(std::move(status));
}

bool Step::fail_locked(Status status) {
  const bool first = error_.ok();
  if (first) error_ = std::move(status);
  cancelled_.store(true, std::memory_order_release);
  return first;
}

Status Step::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

bool Step::answered() const {
  std::lock_guard lock(mutex_);
  return answered_;
}

void Step::answer(Answer answer, const RunStats& stats) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(answered_, true)) return;
    if (!on_answer) {
      answer_.emplace(std::move(answer));
      stats_ = stats;
      changed_.notify_all();
      return;
    }
  }
  on_answer(std::move(answer), stats);
}

Step::Answer Step::wait(RunStats* stats) {
  std::unique_lock lock(mutex_);
  const auto is_answered = [this] { return answer_.has_value(); };
  if (timeout.count() == 0) {
    changed_.wait(lock, is_answered);
  } else if (!changed_.wait_until(lock, deadline, is_answered)) {
    lock.unlock();
    expire();
    lock.lock();
    if (!changed_.wait_for(lock, kGrace, is_answered)) {
      lock.unlock();
      give_up();
      lock.lock();
    }
  }
  if (stats != nullptr) *stats = stats_;
  return std::move(*answer_);
}

void Step::check_deadline() {
  if (timeout.count() > 0 && std::chrono::steady_clock::now() > deadline)
    expire();
}

void Step::expire() {
  std::lock_guard lock(mutex_);
  if (fail_locked(late())) expired_ = true;
}

bool Step::expired() const {
  std::lock_guard lock(mutex_);
  return expired_;
}

void Step::give_up() {
  const Status first = error();
  answer(Status(
      first.code(),
      fmt::format("{}; {} ms after its deadline the step was not at rest, a "
                  "kernel that cannot be interrupted may still run",
                  first.message(), kGrace.count())));
}

Status Step::late() const {
  const double seconds = std::chrono::duration<double>(timeout).count();
  return tagflow::error(
      Code::kDeadlineExceeded,
      "[session] the run took longer than its time-out of {} s", seconds);
}

void Step::quiet() {
  const std::shared_ptr<Step> self = std::move(self_);
  on_quiet(*this);
}

}  // namespace tagflow::actors
