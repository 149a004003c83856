// Workloads: loops.
//
//   loop          while i < n: i += 1, with --vars variables
//   nested        a loop in a loop
//   loop_cond     a loop with a conditional in it
//   tensor_array  a loop that writes one element of a TensorArray a trip; the
//                 whole trip counts, and its share of the gather at the end
//   assign        a loop that adds to a variable in each trip
//   queue         a loop that puts a scalar into a queue, and takes it out
//   map_fn        x * x + 1 of every element of a vector, us per element
//   loop_memory   the peak memory of the process after a loop
//   loop_scaling  a loop of two independent products, 2 workers against 1;
//                 two_apart is what the machine allows: twice the time of a
//                 run of 1 worker over that of two such runs side by side
//   trace         the first loop while it is recorded, over the same by itself
#include <algorithm>
#include <future>

#include "actors/watch/trace.h"
#include "apps/bench/process_figures.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

// The default of TensorFlow and of the builder.
constexpr int kDefaultWindow = 10;

int64_t trips_or(const BenchOptions& options, int64_t fallback) {
  return options.trips > 0 ? options.trips : fallback;
}

nlohmann::json config_of(const BenchOptions& options, int64_t trips) {
  return {{"trips", trips},
          {"window",
           options.engine.window > 0 ? options.engine.window : kDefaultWindow},
          {"workers", options.engine.workers},
          {"repeats", options.repeats}};
}

}  // namespace

Result<double> seconds_per_trip(const Result<BenchGraph>& graph,
                                const BenchOptions& options, int64_t trips,
                                double total) {
  TAGFLOW_RETURN_IF_ERROR(graph.status());
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(*graph, session));
  const Tensor none = Tensor::scalar<int32_t>(0);
  const Tensor all = Tensor::scalar(int32_t(trips));
  TAGFLOW_ASSIGN(const double base, run.seconds({&none, 1}, options.repeats));
  TAGFLOW_ASSIGN(const double full, run.seconds({&all, 1}, options.repeats));
  return (full - base) / total;
}

Result<Measurement> measure_loop(const BenchOptions& options) {
  const int64_t trips =
      trips_or(options, std::max(200'000 / options.vars, 1000));
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_per_trip(make_loop(options.vars), options, trips, double(trips)));
  nlohmann::json config = config_of(options, trips);
  config["vars"] = options.vars;
  return Measurement{"loop", seconds * 1e9, "ns", std::move(config)};
}

Result<Measurement> measure_nested(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 100);
  TAGFLOW_ASSIGN(const double seconds,
                 seconds_per_trip(make_nested_loop(), options, trips,
                                  double(trips) * double(trips)));
  return Measurement{"nested", seconds * 1e9, "ns", config_of(options, trips)};
}

Result<Measurement> measure_loop_cond(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 50'000);
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_per_trip(make_loop_with_cond(), options, trips, double(trips)));
  return Measurement{"loop_cond", seconds * 1e9, "ns",
                     config_of(options, trips)};
}

Result<Measurement> measure_map_fn(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 10'000);
  TAGFLOW_ASSIGN(const double seconds, seconds_per_trip(make_map_fn(), options,
                                                        trips, double(trips)));
  return Measurement{"map_fn", seconds * 1e6, "us", config_of(options, trips)};
}

Result<Measurement> measure_tensor_array(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 50'000);
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_per_trip(make_loop_of_writes(), options, trips, double(trips)));
  return Measurement{"tensor_array", seconds * 1e6, "us",
                     config_of(options, trips)};
}

Result<Measurement> measure_assign(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 50'000);
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_per_trip(make_loop_of_updates(), options, trips, double(trips)));
  return Measurement{"assign", seconds * 1e6, "us", config_of(options, trips)};
}

Result<Measurement> measure_queue(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 50'000);
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_per_trip(make_loop_of_queue(), options, trips, double(trips)));
  return Measurement{"queue", seconds * 1e6, "us", config_of(options, trips)};
}

// Run it in a separate process, since the peak is that of the process.
Result<Measurement> measure_loop_memory(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 10'000'000);
  TAGFLOW_ASSIGN(const BenchGraph graph, make_loop(options.vars));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  const Tensor feed = Tensor::scalar(int32_t(trips));
  TAGFLOW_RETURN_IF_ERROR(run.run({&feed, 1}));
  TAGFLOW_ASSIGN(const int64_t bytes, peak_resident_bytes());
  return Measurement{"loop_memory", double(bytes), "bytes",
                     config_of(options, trips)};
}

Result<Measurement> measure_loop_scaling(const BenchOptions& options) {
  // About 100 us of one thread for each of the two products.
  constexpr int kSize = 208;
  const int64_t trips = trips_or(options, 500);
  BenchOptions one = options, two = options;
  one.engine.workers = 1;
  two.engine.workers = 2;
  const auto measure = [&](const BenchOptions& with) {
    return seconds_per_trip(make_loop_of_products(kSize), with, trips,
                            double(trips));
  };
  // Alternates, so that a change in the machine's speed affects both.
  std::vector<double> ratios, ratios_apart, singles;
  for (int i = 0; i < 3; ++i) {
    TAGFLOW_ASSIGN(const double single, measure(one));
    TAGFLOW_ASSIGN(const double pair, measure(two));
    auto beside = std::async(std::launch::async, measure, one);
    const Result<double> here = measure(one);
    TAGFLOW_ASSIGN(const double there, beside.get());
    TAGFLOW_RETURN_IF_ERROR(here.status());
    singles.push_back(single);
    ratios.push_back(single / pair);
    ratios_apart.push_back(2 * single / std::max(*here, there));
  }
  nlohmann::json config = config_of(options, trips);
  config["workers"] = {1, 2};
  config["size"] = kSize;
  config["us_per_trip_1_worker"] = median(std::move(singles)) * 1e6;
  config["two_apart"] = median(std::move(ratios_apart));
  return Measurement{"loop_scaling", median(std::move(ratios)), "ratio",
                     std::move(config)};
}

Result<Measurement> measure_trace(const BenchOptions& options) {
  const int64_t trips = trips_or(options, 20'000);
  BenchOptions one = options;
  if (one.engine.workers == 0) one.engine.workers = 1;
  TAGFLOW_ASSIGN(const BenchGraph graph, make_loop(1));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(one.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  const Tensor limit = Tensor::scalar(int32_t(trips));
  std::vector<double> ratios;
  for (int i = -1; i < options.repeats; ++i) {
    actors::Trace trace;
    actors::RunOptions recorded;
    recorded.trace = &trace;
    TAGFLOW_ASSIGN(const double plain, run.time({&limit, 1}));
    TAGFLOW_ASSIGN(const double traced, run.time({&limit, 1}, recorded));
    if (trace.dropped() > 0)
      return invalid_argument("[bench] a trace has no room for {} trips",
                              trips);
    if (i >= 0) ratios.push_back(traced / plain);
  }
  return Measurement{"trace", median(std::move(ratios)), "ratio",
                     config_of(one, trips)};
}

}  // namespace tagflow::apps
