#include "actors/session/coordinator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "graph/fault.h"

namespace tagflow::actors {

namespace {

// Longer graces would overflow a time point.
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);

struct CoordinatedThread {
  std::string name;
  std::thread thread;
  bool ended = false;
};

bool is_usual_end(const Status& status) {
  return status.code() == Code::kOutOfRange ||
         status.code() == Code::kCancelled;
}

}  // namespace

struct Coordinator::State {
  bool all_ended() const {
    return hooks_running == 0 &&
           std::ranges::all_of(workers, &CoordinatedThread::ended);
  }

  mutable std::mutex mutex;  // guards the below
  mutable std::condition_variable changed;
  std::list<CoordinatedThread> workers;  // a list: elements do not move
  bool stop = false;
  Status reason;
  std::vector<std::function<void()>> hooks;
  int hooks_running = 0;  // threads that call hooks
};

Coordinator::Coordinator() : state_(std::make_unique<State>()) {}

Coordinator::~Coordinator() {
  request_stop();
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->hooks_running == 0; });
  }
  for (CoordinatedThread& worker : state_->workers)
    if (worker.thread.joinable()) worker.thread.join();
}

Status Coordinator::start(std::string name, std::function<Status()> body) {
  const std::lock_guard lock(state_->mutex);
  if (state_->stop)
    return error(Code::kFailedPrecondition,
                 "[coordinator] cannot start thread \"{}\" after a stop", name);
  try {
    // In a list of its own: a thread that was not started must not be waited
    // for.
    std::list<CoordinatedThread> started(1);
    CoordinatedThread& worker = started.front();
    worker.thread = std::thread([this, &worker, body = std::move(body)] {
      Status status = guarded("coordinator", body);
      if (!status.ok()) request_stop(std::move(status));
      const std::lock_guard ended(state_->mutex);
      worker.ended = true;
      state_->changed.notify_all();
    });
    worker.name = std::move(name);
    state_->workers.splice(state_->workers.end(), started);
  } catch (const std::system_error& failure) {
    return error(Code::kResourceExhausted,
                 "[coordinator] cannot start thread \"{}\": {}", name,
                 failure.what());
  } catch (...) {
    return current_fault("coordinator");
  }
  return {};
}

void Coordinator::request_stop(Status reason) {
  std::vector<std::function<void()>> hooks;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stop) return;
    state_->stop = true;
    if (!is_usual_end(reason)) state_->reason = std::move(reason);
    hooks.swap(state_->hooks);
    ++state_->hooks_running;
    state_->changed.notify_all();
  }
  for (const auto& hook : hooks) hook();
  const std::lock_guard lock(state_->mutex);
  --state_->hooks_running;
  state_->changed.notify_all();
}

bool Coordinator::should_stop() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stop;
}

bool Coordinator::wait_for_stop(std::chrono::nanoseconds timeout) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::min(timeout, kLongest),
                                  [this] { return state_->stop; });
}

void Coordinator::on_stop(std::function<void()> hook) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->stop) {
      state_->hooks.push_back(std::move(hook));
      return;
    }
  }
  hook();
}

Status Coordinator::join(std::chrono::nanoseconds grace) {
  std::unique_lock lock(state_->mutex);
  for (const CoordinatedThread& worker : state_->workers)
    if (worker.thread.get_id() == std::this_thread::get_id())
      return error(Code::kFailedPrecondition,
                   "[coordinator] the thread \"{}\" cannot wait for itself",
                   worker.name);
  const auto all_ended = [this] { return state_->all_ended(); };
  state_->changed.wait(lock,
                       [&] { return state_->stop || state_->all_ended(); });
  if (!state_->changed.wait_for(lock, std::min(grace, kLongest), all_ended)) {
    std::vector<std::string> names;
    for (const CoordinatedThread& worker : state_->workers)
      if (!worker.ended) names.push_back(worker.name);
    // The reason of the stop is more helpful than the time-out.
    if (!state_->reason.ok()) return state_->reason;
    return error(Code::kDeadlineExceeded,
                 "[coordinator] threads still run after {:.3g} s of grace: {}",
                 std::chrono::duration<double>(grace).count(),
                 fmt::join(names, ", "));
  }
  return state_->reason;
}

}  // namespace tagflow::actors
