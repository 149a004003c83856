// Runs that go on beside the steps of a training, such as those of replicas
// that update variables as they come.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/shared/training/trainer.h"

namespace tagflow::training {

// Repeats each of the runs, with a thread of its own, from construction until
// an error or stop(). REQUIRES: the session and `runs` outlive it.
class BesideRuns {
 public:
  // `first` is the index of the first batch of each.
  BesideRuns(actors::Session& session, const std::vector<BesideRun>& runs,
             int64_t first);
  BesideRuns(const BesideRuns&) = delete;
  BesideRuns& operator=(const BesideRuns&) = delete;
  ~BesideRuns() { static_cast<void>(stop()); }

  // Whether one of them has ended by an error, which stop() returns.
  // Thread-safe.
  bool has_failed() const { return has_failed_; }
  // Cancels them, and waits. Returns the first error of those that ended by
  // themselves, which is why the others may have stalled.
  Status stop();

 private:
  void repeat(const BesideRun& run, int64_t first);
  Status run_once(const actors::Callable& call, const BesideRun& run,
                  int64_t index);

  actors::Session& session_;
  actors::RunOptions options_;
  std::atomic<bool> is_over_{false}, has_failed_{false};
  std::mutex mutex_;  // guards the below
  Status error_;
  std::vector<std::thread> threads_;
};

}  // namespace tagflow::training
