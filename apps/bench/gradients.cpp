// Workloads: gradients.
//
//   loop_grad           while i < n: y *= w, i += 1, and its derivatives by w
//                       and by what y begins with: us per iteration, which is
//                       one forward and one backward
//   map_fn_grad         the gradient of the sum of map_fn of x * x + 1, us per
//                       element
//   second_order_ratio  the second derivatives of the loop of loop_grad, over
//                       the first ones
//   gradient_build      the time until a graph has its gradient: a chain of
//                       multiplications and tanh, where each value is used
//                       twice, and one by all
//   grad_memory         the peak memory of the process after the gradient of a
//                       loop that uses 1 MiB from outside in each trip: first
//                       10 trips, then all
//
// Of loops, a run of zero trips is subtracted. Medians over --repeats after one
// that is not counted; of second_order_ratio the median of 3 such ratios, and
// gradient_build measures 5 times at most.
#include "autodiff/gradients.h"

#include <algorithm>

#include "apps/bench/building.h"
#include "apps/bench/gradient_graphs.h"
#include "apps/bench/process_figures.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

nlohmann::json gradient_config(const BenchOptions& options, int64_t trips) {
  return {{"trips", trips},
          {"workers", options.engine.workers},
          {"repeats", options.repeats}};
}

// Microseconds per trip.
Result<Measurement> measure_gradient_trips(std::string name,
                                           const Result<BenchGraph>& graph,
                                           const BenchOptions& options,
                                           int64_t trips) {
  TAGFLOW_ASSIGN(const double seconds,
                 seconds_per_trip(graph, options, trips, double(trips)));
  return Measurement{std::move(name), seconds * 1e6, "us",
                     gradient_config(options, trips)};
}

// Seconds to extend a graph of this many nodes, and its number of nodes
// afterwards.
struct GradientBuild {
  double seconds = 0;
  size_t nodes = 0, nodes_after = 0;
};

Result<GradientBuild> build_gradient(int nodes) {
  Graph graph;
  const Scope s(graph);
  const Output x = opaque(s, Tensor::scalar(0.5f));
  const Output w = opaque(s, Tensor::scalar(0.9f));
  Output y = x;
  while (int(graph.size()) < nodes && s.ok())
    y = ops::add(s, y, ops::tanh(s, ops::mul(s, y, w)));
  GradientBuild build;
  build.nodes = graph.size();
  TAGFLOW_ASSIGN(build.seconds, seconds_of([&] {
                   autodiff::gradients(s, {y}, {x, w});
                   return s.status();
                 }));
  build.nodes_after = graph.size();
  return build;
}

}  // namespace

Result<Measurement> measure_loop_grad(const BenchOptions& options) {
  const int64_t trips = options.trips > 0 ? options.trips : 20'000;
  return measure_gradient_trips("loop_grad", make_loop_grad(), options, trips);
}

Result<Measurement> measure_map_fn_grad(const BenchOptions& options) {
  const int64_t trips = options.trips > 0 ? options.trips : 10'000;
  return measure_gradient_trips("map_fn_grad", make_map_fn_grad(), options,
                                trips);
}

Result<Measurement> measure_second_order_ratio(const BenchOptions& options) {
  const int64_t trips = options.trips > 0 ? options.trips : 10'000;
  // Alternates, so that a change in the machine's speed affects both.
  std::vector<double> ratios, firsts;
  for (int i = 0; i < 3; ++i) {
    TAGFLOW_ASSIGN(
        const double first,
        seconds_per_trip(make_loop_grad(1), options, trips, double(trips)));
    TAGFLOW_ASSIGN(
        const double second,
        seconds_per_trip(make_loop_grad(2), options, trips, double(trips)));
    firsts.push_back(first);
    ratios.push_back(second / first);
  }
  nlohmann::json config = gradient_config(options, trips);
  config["us_per_trip_first_order"] = median(std::move(firsts)) * 1e6;
  return Measurement{"second_order_ratio", median(std::move(ratios)), "ratio",
                     std::move(config)};
}

Result<Measurement> measure_gradient_build(const BenchOptions& options) {
  const int nodes = options.nodes > 0 ? options.nodes : 10'000;
  const int repeats = std::min(options.repeats, 5);
  GradientBuild last;
  TAGFLOW_ASSIGN(const double seconds,
                 median_of(repeats, [&]() -> Result<double> {
                   TAGFLOW_ASSIGN(last, build_gradient(nodes));
                   return last.seconds;
                 }));
  return Measurement{"gradient_build",
                     seconds,
                     "s",
                     {{"nodes", last.nodes},
                      {"nodes_after", last.nodes_after},
                      {"repeats", repeats}}};
}

// Run it in a separate process, since the peak is that of the process.
Result<Measurement> measure_grad_memory(const BenchOptions& options) {
  constexpr int32_t kFewTrips = 10;
  constexpr int64_t kBytes = 1 << 20;
  const int64_t trips = options.trips > 0 ? options.trips : 10'000;
  TAGFLOW_ASSIGN(const BenchGraph graph, make_loop_grad_of_large(kBytes));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  const auto peak_after = [&](int32_t n) -> Result<int64_t> {
    const Tensor feed = Tensor::scalar(n);
    TAGFLOW_RETURN_IF_ERROR(run.run({&feed, 1}));
    return peak_resident_bytes();
  };
  TAGFLOW_ASSIGN(const int64_t few, peak_after(kFewTrips));
  TAGFLOW_ASSIGN(const int64_t bytes, peak_after(int32_t(trips)));
  return Measurement{"grad_memory",
                     double(bytes),
                     "bytes",
                     {{"trips", trips},
                      {"w_bytes", kBytes},
                      {"bytes_of_10_trips", few},
                      {"workers", options.engine.workers}}};
}

}  // namespace tagflow::apps
