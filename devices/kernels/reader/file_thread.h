// FileThread: a thread that reads files for one owner.
#pragma once

#include <functional>
#include <memory>

#include "graph/status.h"

namespace tagflow::devices {

// The thread is made by the first piece of work. Thread-safe.
class FileThread {
 public:
  FileThread();
  // A piece of work that has not begun is dropped. May be called on the thread
  // itself, by the destructor of what a piece of work has held.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // Runs `work` on the thread. ResourceExhausted if there can be no thread.
  // REQUIRES: earlier work has begun; `work` throws nothing.
  Status start(std::function<void()> work);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace tagflow::devices
