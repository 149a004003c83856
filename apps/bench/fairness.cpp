// Workload: the latency of a small run beside others that want all workers.
//
//   fairness  run_async() of one cheap kernel, --trips times after one another
//             in each of --repeats rounds, each from 0 to 50 ms after the
//             answer before, so that they meet a kernel in any part of it.
//             Beside them, as many runs as there are workers, of
//               kernels_in_a_row   a loop, one kernel of 50 ms a trip, which
//                                  reads what the one before has made; window 1
//                                  and 10
//               kernels_at_once    the same of kernels that read the counter
//                                  alone: with window 10, ten at once
//               nodes              a root of --nodes cheap nodes, none left
//                                  out, again and again; cpu_p99 is the time of
//                                  a processor that each worker had meanwhile,
//                                  which does not grow if other processes
//                                  take the processors away
//             with one worker and with two (--workers: with so many), and with
//             the small run of normal and of high priority.
// Kernels of 50 ms sleep: their time is the same if threads outnumber cores,
// and the rest is the engine's. The value is the worst p99 of all cases.
#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <random>
#include <thread>

#include "apps/bench/busy_op.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

constexpr std::chrono::nanoseconds kKernel = std::chrono::milliseconds(50);
constexpr int kDefaultRuns = 25;
constexpr int kDefaultNodes = 1'000'000;

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Runs a graph repeatedly while the caller measures something else.
class Companion {
 public:
  // `run` outlives it.
  Companion(const PreparedRun& run, std::vector<Tensor> feeds)
      : run_(run), feeds_(std::move(feeds)) {
    ended_ = std::async(std::launch::async, [this] { return go_on(); });
  }
  ~Companion() { cancel_.cancel(); }  // and waits, by ended_
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  // The number of runs that finished, or the error of one. REQUIRES: called
  // once.
  Result<int64_t> stop() {
    cancel_.cancel();
    return ended_.get();
  }

 private:
  Result<int64_t> go_on() {
    actors::RunOptions options;
    options.cancel = cancel_;
    for (int64_t runs = 0;; ++runs) {
      const auto time = run_.time_async(feeds_, options);
      if (time.ok()) continue;
      if (cancel_.cancelled() && time.status().code() == Code::kCancelled)
        return runs;
      return time.status();
    }
  }

  const PreparedRun& run_;
  const std::vector<Tensor> feeds_;
  actors::CancelToken cancel_;
  std::future<Result<int64_t>> ended_;
};

struct Load {
  const char* name;
  int window;  // 0: it has no loop
  PreparedRun run;
  std::vector<Tensor> feeds;
};

Result<Load> make_busy_load(bool in_a_row, int window,
                            const actors::SessionOptions& session) {
  TAGFLOW_ASSIGN(const BenchGraph graph,
                 make_busy_loop({.nanoseconds = kKernel.count(),
                                 .how = Busy::kSleeps,
                                 .window = window,
                                 .in_a_row = in_a_row}));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  // Practically without an end.
  const Tensor trips =
      Tensor::scalar<int32_t>(std::numeric_limits<int32_t>::max());
  return Load{in_a_row ? "kernels_in_a_row" : "kernels_at_once",
              window,
              std::move(run),
              {trips}};
}

Result<Load> make_node_load(int nodes, actors::SessionOptions session) {
  session.passes = graph::PassSet::none();
  TAGFLOW_ASSIGN(const BenchGraph graph, make_fan_out("Add", nodes));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  return Load{"nodes", 0, std::move(run), {}};
}

// Times `runs` small runs beside `count` of the load. Adds the figures to
// `config`.
Status measure_beside(const PreparedRun& small, const Load& load, int count,
                      int runs, actors::Priority priority,
                      nlohmann::json& config) {
  std::minstd_rand random(1);
  std::uniform_int_distribution<int64_t> pause(0, kKernel.count());
  const Tensor x = Tensor::scalar(1.0f);
  actors::RunOptions options;
  options.priority = priority;
  std::vector<std::unique_ptr<Companion>> companions;
  for (int i = 0; i < count; ++i)
    companions.push_back(std::make_unique<Companion>(load.run, load.feeds));
  // All are running.
  std::this_thread::sleep_for(2 * kKernel);
  TAGFLOW_RETURN_IF_ERROR(small.time_async({&x, 1}, options).status());
  const int64_t kernels_before = busy_kernels_run();
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> times, cpu_times;
  for (int i = 0; i < runs; ++i) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause(random)));
    TAGFLOW_ASSIGN(const Took time, small.time_async({&x, 1}, options));
    times.push_back(time.seconds * 1e3);
    cpu_times.push_back(time.cpu_seconds * 1e3 / count);
  }
  const std::chrono::duration<double> all =
      std::chrono::steady_clock::now() - start;
  const int64_t kernels = busy_kernels_run() - kernels_before;
  int64_t loads_run = 0;
  for (const auto& companion : companions) {
    TAGFLOW_ASSIGN(const int64_t ended, companion->stop());
    loads_run += ended;
  }
  if (load.window > 0) {
    config["window"] = load.window;
    // The share of all workers' time that kernels used.
    config["busy_share"] = double(kernels) *
                           std::chrono::duration<double>(kKernel).count() /
                           (all.count() * count);
  } else {
    config["loads_run"] = loads_run;
    config["cpu_p99"] = percentile(cpu_times, 0.99);
  }
  config["p50"] = percentile(times, 0.5);
  config["p99"] = percentile(times, 0.99);
  config["max"] = percentile(times, 1);
  return {};
}

// The cases of one load with one number of workers.
Status measure_cases(const PreparedRun& small, const Load& load, int workers,
                     int runs, nlohmann::json& cases, double& worst) {
  using actors::Priority;
  for (const Priority priority : {Priority::kNormal, Priority::kHigh}) {
    nlohmann::json one = {
        {"workers", workers},
        {"beside", load.name},
        {"priority", priority == Priority::kHigh ? "high" : "normal"}};
    TAGFLOW_RETURN_IF_ERROR(
        measure_beside(small, load, workers, runs, priority, one));
    worst = std::max(worst, one["p99"].get<double>());
    cases.push_back(std::move(one));
  }
  return {};
}

Status measure_workers(BenchOptions options, int workers, int runs, int nodes,
                       nlohmann::json& cases, double& worst) {
  options.engine.workers = workers;
  TAGFLOW_ASSIGN(const actors::SessionOptions session,
                 on_one_engine(options.engine));
  TAGFLOW_ASSIGN(const BenchGraph graph, make_one_kernel());
  TAGFLOW_ASSIGN(const PreparedRun small, PreparedRun::make(graph, session));
  struct Loop {
    bool in_a_row;
    int window;
  };
  std::vector<Loop> loops = {{true, 1}, {true, 10}, {false, 10}};
  if (const int window = options.engine.window; window > 0)
    loops = {{true, window}, {false, window}};
  for (const auto& [in_a_row, window] : loops) {
    TAGFLOW_ASSIGN(const Load load, make_busy_load(in_a_row, window, session));
    TAGFLOW_RETURN_IF_ERROR(
        measure_cases(small, load, workers, runs, cases, worst));
  }
  TAGFLOW_ASSIGN(const Load load, make_node_load(nodes, session));
  return measure_cases(small, load, workers, runs, cases, worst);
}

}  // namespace

Result<Measurement> measure_fairness(const BenchOptions& options) {
  TAGFLOW_RETURN_IF_ERROR(register_busy_op());
  const int64_t per_round = options.trips > 0 ? options.trips : kDefaultRuns;
  const int64_t runs = per_round * options.repeats;
  constexpr int64_t kMostRuns = 1'000'000;
  if (runs > kMostRuns)
    return invalid_argument(
        "[bench] {} small runs are too many: the limit is {}", runs, kMostRuns);
  const int nodes = options.nodes > 0 ? options.nodes : kDefaultNodes;
  std::vector<int> workers = {1, 2};
  if (options.engine.workers > 0) workers = {options.engine.workers};
  nlohmann::json cases = nlohmann::json::array();
  double worst = 0;
  for (const int count : workers) {
    TAGFLOW_RETURN_IF_ERROR(
        measure_workers(options, count, int(runs), nodes, cases, worst));
  }
  return Measurement{"fairness",
                     worst,
                     "ms",
                     {{"kernel_ms", milliseconds(kKernel)},
                      {"nodes", nodes},
                      {"workers", workers},
                      {"runs", runs},
                      {"repeats", options.repeats},
                      {"cases", std::move(cases)}}};
}

}  // namespace tagflow::apps
