// Cancels runs that can never finish while a program waits for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "actors/session/session.h"

namespace tagflow::apps {

// While it lives, it checks now and then whether the session is stalled
// (actors::Session::stalled), and cancels the runs that have `token` if so. It
// is for a program that submits nothing while it waits, since a later run might
// enqueue what the waiting ones dequeue. If threads that fill queues keep
// submitting runs, a check may fall `between_runs` of them: then it cancels
// only when several answers in a row are the same. REQUIRES: the session
// outlives it.
class StallWatch {
 public:
  StallWatch(actors::Session& session, actors::CancelToken token,
             bool between_runs = false);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  ~StallWatch();

  // Whether the program itself submits and waits for nothing for a while, as
  // when it writes files: then there is no stall, though all runs wait. False
  // at first. Thread-safe.
  void set_idle(bool is_idle) { is_idle_ = is_idle; }

  // The status of a run; if the run was cancelled for a stall, Deadlock, with
  // the waiting nodes and what they wait for. Thread-safe.
  Status status_of(Status status) const;

 private:
  void watch();

  actors::Session& session_;
  actors::CancelToken token_;
  const int least_answers_;  // in a row
  std::atomic<bool> is_idle_{false};
  mutable std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool is_over_ = false;
  std::optional<std::string> stall_;
  std::thread watcher_;
};

}  // namespace tagflow::apps
