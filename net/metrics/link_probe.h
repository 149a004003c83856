// LinkProbe: whether the threads of a process's links answer.
#pragma once

#include <chrono>
#include <memory>

#include "graph/status.h"
#include "net/link/io_thread.h"
#include "net/transfer/channel.h"

namespace tagflow::net {

// A thread answers if it takes what is posted to it. While one does not, no
// more is posted. Thread-safe.
class LinkProbe {
 public:
  static constexpr std::chrono::milliseconds kMost{1000 * kSlowness};

  // The threads outlive it.
  explicit LinkProbe(const IoThreads& threads);
  ~LinkProbe();
  LinkProbe(const LinkProbe&) = delete;
  LinkProbe& operator=(const LinkProbe&) = delete;

  // OK if both threads answer within `most`. Unavailable, naming the one that
  // does not. REQUIRES: the caller is none of them
  Status check(std::chrono::milliseconds most = kMost);

 private:
  struct Asked;
  struct Probed {
    const char* name;
    IoThread& thread;
    std::shared_ptr<Asked> asked;  // shared with what is posted
  };
  Probed small_, bulk_;
};

}  // namespace tagflow::net
