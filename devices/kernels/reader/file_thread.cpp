#include "devices/kernels/reader/file_thread.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace tagflow::devices {

// What the thread shares with its owner, which it may outlive.
struct FileThread::Shared {
  std::mutex mutex;  // guards the below
  std::condition_variable changed;
  std::function<void()> next;
  bool is_closed = false;

  std::thread thread;  // the owner's

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return next != nullptr || is_closed; });
      if (is_closed) return;
      std::function<void()> work = std::exchange(next, nullptr);
      lock.unlock();
      work();
      // May destroy the owner, which takes the mutex.
      work = nullptr;
      lock.lock();
    }
  }
};

FileThread::FileThread() : shared_(std::make_shared<Shared>()) {}

FileThread::~FileThread() {
  std::function<void()> dropped;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_closed = true;
    dropped.swap(shared_->next);
    shared_->changed.notify_all();
  }
  if (!shared_->thread.joinable()) return;
  if (shared_->thread.get_id() == std::this_thread::get_id())
    shared_->thread.detach();
  else
    shared_->thread.join();
}

Status FileThread::start(std::function<void()> work) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->thread.joinable()) {
    try {
      shared_->thread = std::thread([shared = shared_] { shared->run(); });
    } catch (const std::system_error& thrown) {
      return error(Code::kResourceExhausted, "cannot create a thread: {}",
                   thrown.what());
    }
  }
  shared_->next = std::move(work);
  shared_->changed.notify_all();
  return {};
}

}  // namespace tagflow::devices
