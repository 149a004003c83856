// What a program does where it waits for runs that nothing can end.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "actors/session/session.h"

namespace tagflow::apps {

// As long as it lives, it asks the session now and then whether it is stalled
// (actors::Session::stalled), and cancels the runs that have `token` if so. For
// a program that submits nothing while it waits: else a later run might put
// what the waiting ones take. Where threads that fill queues do nothing but
// submit runs, it may be `between_runs` of them that it asks: then it cancels
// when the answer has been the same for a while. REQUIRES: the session outlives
// it.
class StallWatch {
 public:
  StallWatch(actors::Session& session, actors::CancelToken token,
             bool between_runs = false);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  ~StallWatch();

  // Of a run's status: where the run was cancelled for a stall, Deadlock, with
  // who waits for what. Thread-safe.
  Status status_of(Status status) const;

 private:
  void watch();

  actors::Session& session_;
  actors::CancelToken token_;
  const int least_answers_;   // in a row
  mutable std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  bool is_over_ = false;
  std::optional<std::string> stall_;
  std::thread watcher_;
};

}  // namespace tagflow::apps
