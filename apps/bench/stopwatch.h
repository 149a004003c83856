// Timing runs of one signature.
#pragma once

#include <span>
#include <vector>

#include "actors/session.h"
#include "apps/bench/graphs.h"
#include "apps/common/owned_session.h"
#include "graph/status.h"

namespace tagflow::apps {

// The middle one; the lower of two. REQUIRES: !values.empty()
double median(std::vector<double> values);

// A session with one graph and a prepared call of its signature.
class PreparedRun {
 public:
  static Result<PreparedRun> make(const BenchGraph& graph,
                                  const actors::SessionOptions& options);

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

 private:
  OwnedSession session_;
  actors::Callable call_;
};

}  // namespace tagflow::apps
