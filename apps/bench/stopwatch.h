// Timing runs of one signature.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "apps/bench/graphs.h"
#include "apps/common/owned_session.h"
#include "graph/status.h"

namespace tagflow::apps {

using Clock = std::chrono::steady_clock;

// The middle one; the lower of two. REQUIRES: !values.empty()
double median(std::vector<double> values);
// The smallest one that a share of `rank`, above 0 to 1, of them does not
// exceed. REQUIRES: !values.empty()
double percentile(std::vector<double> values, double rank);

// How many seconds one call takes; its error where it fails.
Result<double> seconds_of(const std::function<Status()>& body);
// The median of `repeats` measurements after one that is not counted; the error
// of the first that fails. REQUIRES: repeats >= 1
Result<double> median_of(int repeats,
                         const std::function<Result<double>()>& measure);

struct Took {
  double seconds = 0;
  double cpu_seconds = 0;  // that the process had meanwhile, of all threads
};

// A session with one graph and a prepared call of its signature.
class PreparedRun {
 public:
  // Runs the targets that the graph has in `init`. Errors of the session.
  static Result<PreparedRun> make(const BenchGraph& graph,
                                  const actors::SessionOptions& options);

  // The session that has the graph. Valid as long as this.
  actors::Session& session() const { return *session_; }

  // Seconds of one run, by the median: warms up with one measurement, then
  // takes `repeats`, each the mean of `inner` runs after one another.
  Result<double> seconds(std::span<const Tensor> feeds, int repeats,
                         int inner = 1);

  // Runs once; the second gives what was fetched.
  Status run(std::span<const Tensor> feeds,
             const actors::RunOptions& options = {});
  Result<std::vector<Tensor>> results(std::span<const Tensor> feeds);
  // The seconds of one run.
  Result<double> time(std::span<const Tensor> feeds,
                      const actors::RunOptions& options = {});
  // Of an asynchronous run, to which this thread is not lent, until the answer
  // is there. Thread-safe.
  Result<Took> time_async(std::span<const Tensor> feeds,
                          const actors::RunOptions& options = {}) const;
  // See actors::Callable. Thread-safe.
  void run_async(std::span<const Tensor> feeds,
                 const actors::RunOptions& options, actors::Done done) const {
    call_.run_async(feeds, options, std::move(done));
  }

 private:
  OwnedSession session_;
  actors::Callable call_;
};

}  // namespace tagflow::apps
