#include "devices/state/shard_writer.h"

#include <sys/resource.h>

#include <condition_variable>
#include <system_error>
#include <thread>
#include <utility>

namespace tagflow::devices {
namespace {

// A fifth of the weight of a thread of steps.
constexpr int kNicer = 7;

void lower_priority() {
  // On Linux it is that of the thread. If it fails, the thread is not nice.
  static_cast<void>(
      ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer));
}

}  // namespace

// What the thread shares with its owner, which it may outlive.
struct ShardWriter::Thread {
  std::mutex mutex;  // guards the group below
  std::condition_variable changed;
  std::shared_ptr<Job> job, next;  // that runs, and that is to run
  bool is_closed = false;

  std::thread thread;  // the owner's; made by the first start()

  void run() {
    lower_priority();
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return next != nullptr || is_closed; });
      if (next == nullptr) return;
      job = std::exchange(next, nullptr);
      const std::shared_ptr<Job> now = job;
      lock.unlock();
      now->run();
      lock.lock();
      job = nullptr;
    }
  }
  void stop() {
    std::unique_lock lock(mutex);
    const auto jobs = {job, next};
    lock.unlock();
    for (const auto& each : jobs)
      if (each != nullptr) each->stop();
  }
};

ShardWriter::ShardWriter() : thread_(std::make_shared<Thread>()) {}

ShardWriter::~ShardWriter() {
  thread_->stop();
  bool is_busy = false;
  {
    const std::lock_guard lock(thread_->mutex);
    thread_->is_closed = true;
    is_busy = thread_->job != nullptr || thread_->next != nullptr;
    thread_->changed.notify_all();
  }
  if (!thread_->thread.joinable()) return;
  // A job has tensors, whose memory may end next. Without one, there is no need
  // to wait until a thread of low priority gets a processor.
  if (is_busy && thread_->thread.get_id() != std::this_thread::get_id())
    thread_->thread.join();
  else
    thread_->thread.detach();
}

void ShardWriter::hold(int64_t save, std::vector<Tensor> tensors) {
  {
    const std::lock_guard lock(mutex_);
    save_ = save;
    tensors_.swap(tensors);
  }
  // Earlier ones are released outside of the lock.
}

Result<std::vector<Tensor>> ShardWriter::take(int64_t save) {
  TAGFLOW_RETURN_IF_ERROR(ended());
  const std::lock_guard lock(mutex_);
  if (save_ == save && save != 0) {
    save_ = 0;
    return std::exchange(tensors_, {});
  }
  return error(Code::kNotFound, "[checkpoint] nothing is held for the save {}",
               save);
}

Status ShardWriter::start(std::shared_ptr<Job> job) {
  TAGFLOW_RETURN_IF_ERROR(ended());
  const std::lock_guard lock(thread_->mutex);
  if (thread_->next != nullptr && !thread_->next->is_stopped())
    return error(Code::kUnavailable,
                 "[checkpoint] another shard waits to be written");
  thread_->next = std::move(job);
  if (!thread_->thread.joinable()) {
    try {
      thread_->thread = std::thread([shared = thread_] { shared->run(); });
    } catch (const std::system_error& thrown) {
      thread_->next = nullptr;
      return error(Code::kResourceExhausted,
                   "[checkpoint] cannot create a thread: {}", thrown.what());
    }
  }
  thread_->changed.notify_all();
  return {};
}

void ShardWriter::on_end(const Status&) {
  thread_->stop();
  hold(0, {});
}

}  // namespace tagflow::devices
