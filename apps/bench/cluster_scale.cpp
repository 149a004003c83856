// Workload: cluster_scale, a loop with a sum over all of --tasks workers in
// each iteration, window 1. Each worker is a process with one thread, or those
// of --cluster are taken: of one job, "worker". `config` has how long its own
// workers took to start and to get their master, and how long a step of all of
// them goes on after it was cancelled.
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "apps/bench/building.h"
#include "apps/bench/local_cluster.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: as other graphs of the workloads

constexpr int kTrips = 500;
// In which a step has begun at all workers.
constexpr std::chrono::milliseconds kBegin{100};

std::string name_of(int task) {
  return fmt::format("/job:worker/task:{}", task);
}

// while i < n: i += 1, a = the mean of a + 1, which each worker makes.
Result<BenchGraph> make_mean_over(int tasks) {
  Building building;
  const Scope s = building.scope().with_device(name_of(0));
  const Output n = trip_count(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        Outputs sums;
        for (int task = 0; task < tasks; ++task)
          sums.push_back(ops::add(in.with_device(name_of(task)), v[1], 1.0f));
        return {ops::add(in, v[0], 1),
                ops::mul(in, ops::add_n(in, sums), 1.0f / float(tasks))};
      },
      {0, 0.0f}, {.parallel_iterations = 1});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

// Seconds from the cancellation of a loop until its answer.
Result<double> abort_seconds(const PreparedRun& run) {
  const Tensor forever = Tensor::scalar(std::numeric_limits<int32_t>::max());
  actors::RunOptions options;
  options.cancel.emplace();
  const auto answer =
      std::make_shared<std::promise<std::pair<Status, Clock::time_point>>>();
  run.run_async({&forever, 1}, options,
                [answer](const auto& result, const auto&) {
                  answer->set_value({result.status(), Clock::now()});
                });
  std::this_thread::sleep_for(kBegin);
  const Clock::time_point begin = Clock::now();
  options.cancel->cancel();
  const auto [status, end] = answer->get_future().get();
  if (status.code() != Code::kCancelled) return status;
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Result<Measurement> measure_cluster_scale(const BenchOptions& options) {
  TAGFLOW_ASSIGN(const BenchGraph graph, make_mean_over(options.tasks));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  std::optional<LocalCluster> cluster;
  std::optional<double> join;  // ms
  if (session.backend == nullptr) {
    const Clock::time_point begin = Clock::now();
    TAGFLOW_ASSIGN(cluster, LocalCluster::start(options.tasks, 1, options.tls));
    join =
        std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    session.backend = cluster->master();
  }
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  const int trips = options.trips > 0 ? int(options.trips) : kTrips;
  TAGFLOW_ASSIGN(const double trip, median_of(options.repeats, [&] {
                   return run.seconds_per_trip(trips);
                 }));
  TAGFLOW_ASSIGN(const double abort, median_of(options.repeats, [&] {
                   return abort_seconds(run);
                 }));
  Measurement measured{"cluster_scale",
                       trip * 1e6,
                       "us",
                       {{"tasks", options.tasks},
                        {"trips", trips},
                        {"abort_ms", abort * 1e3},
                        {"repeats", options.repeats}}};
  if (join) measured.config["join_ms"] = *join;
  return measured;
}

}  // namespace tagflow::apps
