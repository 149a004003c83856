// Timing runs of one signature.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "apps/bench/graphs.h"
#include "apps/shared/program/owned_session.h"
#include "graph/status.h"

namespace tagflow::apps {

using Clock = std::chrono::steady_clock;

// The median; of two middle values the lower one. REQUIRES: !values.empty()
double median(std::vector<double> values);
// The smallest value that a share of `rank` of the values does not exceed.
// REQUIRES: !values.empty(), 0 < rank <= 1
double percentile(std::vector<double> values, double rank);

// The seconds that one call takes, or its error.
Result<double> seconds_of(const std::function<Status()>& body);
// The median of `repeats` measurements after a warm-up, or the first error.
// REQUIRES: repeats >= 1
Result<double> median_of(int repeats,
                         const std::function<Result<double>()>& measure);

// What takes turns in a comparison. Medians, in seconds; `ratio` is that of the
// ratios of the second one to the first one, of one turn each.
struct Compared {
  double first = 0, second = 0, ratio = 0;
};
// So many turns after one that is not counted, or the first error.
// REQUIRES: repeats >= 1
Result<Compared> compare_in_turns(
    int repeats, const std::function<Result<double>()>& first,
    const std::function<Result<double>()>& second);

struct Took {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads of the process meanwhile
};

// A session with one graph and a prepared call of its signature.
class PreparedRun {
 public:
  // Runs the targets in `graph.init`. Returns errors of the session.
  static Result<PreparedRun> make(const BenchGraph& graph,
                                  const actors::SessionOptions& options);

  // The session with the graph. Valid as long as this.
  actors::Session& session() const { return *session_; }

  // The median of the seconds of one run: warms up with one measurement, then
  // makes `repeats`, each the mean of `inner` successive runs.
  Result<double> seconds(std::span<const Tensor> feeds, int repeats,
                         int inner = 1);
  // One such measurement.
  Result<double> mean_seconds(std::span<const Tensor> feeds, int inner);

  // Of a loop that is fed its trips: the seconds of a trip, by one run of so
  // many and one of none.
  Result<double> seconds_per_trip(int trips);

  // Runs once; results() returns the fetches.
  Status run(std::span<const Tensor> feeds,
             const actors::RunOptions& options = {});
  Result<std::vector<Tensor>> results(std::span<const Tensor> feeds);
  // The seconds of one run.
  Result<double> time(std::span<const Tensor> feeds,
                      const actors::RunOptions& options = {});
  // The time of an asynchronous run, to which this thread is not lent, until
  // its answer. Thread-safe.
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
