// Workloads: the memory that gradients of loops take, and what is computed
// again to take less. Peaks are of what the device gave out.
//
//   recompute        while i < n: x = sin(x), of 64 KiB, where every sqrt(n)-th
//                    x is kept: the processor's time over that of keeping all.
//                    Beside it the peaks, in values, and the same of
//                    Save::log()
//   grad_shapes      the peak of the gradient of a loop that fills tensors of
//                    another shape in each trip, about 1 MiB: of --trips, and
//                    of 10
//   grad_pushes      the gradient of a loop of --trips that pushes to a list,
//   grad_gathers     or gathers a row: the time of twice the trips over that of
//                    the trips, and the same of the peaks
//   gradient_nodes   loops nested 4 deep: the nodes of the third derivative
//                    over those of the graph; beside it those of the others
#include <cmath>

#include "apps/bench/building.h"
#include "apps/bench/gradient_graphs.h"
#include "apps/bench/process_figures.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "autodiff/gradients.h"
#include "devices/device.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

struct Use {
  double cpu_seconds = 0;  // the median
  double peak = 0;         // bytes
};

// Runs of the graph with this many trips, in a separate session.
Result<Use> use_of(const Result<BenchGraph>& graph, const BenchOptions& options,
                   int64_t trips, int repeats) {
  TAGFLOW_RETURN_IF_ERROR(graph.status());
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  // Only a device with a limit counts allocations; engines share devices of the
  // same text.
  static int64_t sessions = 0;
  session.devices =
      fmt::format("cpu:1:memory={}MiB", (int64_t{1} << 20) - ++sessions);
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(*graph, session));
  const Tensor feed = Tensor::scalar(int32_t(trips));
  const auto seconds = median_of(repeats, [&]() -> Result<double> {
    TAGFLOW_ASSIGN(const Took took, run.time_async({&feed, 1}));
    return took.cpu_seconds;
  });
  TAGFLOW_RETURN_IF_ERROR(seconds.status());
  return Use{*seconds, double(run.session().devices().front()->memory().peak)};
}

Result<Measurement> measure_growth(std::string name,
                                   Result<BenchGraph> (*make)(),
                                   const BenchOptions& options) {
  const int64_t trips = options.trips > 0 ? options.trips : 10'000;
  const Result<BenchGraph> graph = make();
  TAGFLOW_ASSIGN(const Use once,
                 use_of(graph, options, trips, options.repeats));
  TAGFLOW_ASSIGN(const Use twice,
                 use_of(graph, options, 2 * trips, options.repeats));
  return Measurement{std::move(name),
                     twice.cpu_seconds / once.cpu_seconds,
                     "ratio",
                     {{"trips", trips},
                      {"peak_ratio", twice.peak / once.peak},
                      {"peak_bytes", once.peak},
                      {"repeats", options.repeats}}};
}

}  // namespace

Result<Measurement> measure_recompute(const BenchOptions& options) {
  constexpr int64_t kBytes = 64 << 10;
  const int64_t trips = options.trips > 0 ? options.trips : 10'000;
  const auto root = int64_t(std::sqrt(double(trips)));
  const int repeats = std::min(options.repeats, 3);
  const auto use = [&](const Save& save) {
    return use_of(make_loop_grad_of_values(kBytes, save), options, trips,
                  repeats);
  };
  TAGFLOW_ASSIGN(const Use all, use({}));
  TAGFLOW_ASSIGN(const Use every, use(Save::every(root)));
  TAGFLOW_ASSIGN(const Use halves, use(Save::log()));
  return Measurement{"recompute",
                     every.cpu_seconds / all.cpu_seconds,
                     "ratio",
                     {{"trips", trips},
                      {"every", root},
                      {"value_bytes", kBytes},
                      {"peak_values", every.peak / double(kBytes)},
                      {"peak_values_of_all", all.peak / double(kBytes)},
                      {"peak_values_of_log", halves.peak / double(kBytes)},
                      {"ratio_of_log", halves.cpu_seconds / all.cpu_seconds},
                      {"repeats", repeats}}};
}

Result<Measurement> measure_grad_shapes(const BenchOptions& options) {
  constexpr int64_t kFewTrips = 10;
  const int64_t trips = options.trips > 0 ? options.trips : 1000;
  const Result<BenchGraph> graph = make_loop_grad_of_shapes();
  TAGFLOW_ASSIGN(const Use few, use_of(graph, options, kFewTrips, 1));
  TAGFLOW_ASSIGN(const Use many, use_of(graph, options, trips, 1));
  return Measurement{"grad_shapes",
                     many.peak,
                     "bytes",
                     {{"trips", trips}, {"bytes_of_10_trips", few.peak}}};
}

Result<Measurement> measure_grad_pushes(const BenchOptions& options) {
  return measure_growth("grad_pushes", &make_loop_grad_of_pushes, options);
}

Result<Measurement> measure_grad_gathers(const BenchOptions& options) {
  return measure_growth("grad_gathers", &make_loop_grad_of_gathers, options);
}

Result<Measurement> measure_gradient_nodes(const BenchOptions&) {
  constexpr int kDeep = 4;
  std::vector<double> nodes;
  for (int order = 0; order <= 3; ++order) {
    TAGFLOW_ASSIGN(const BenchGraph graph, make_nested_grad(kDeep, order));
    nodes.push_back(double(graph.graph.size()));
  }
  return Measurement{"gradient_nodes",
                     nodes[3] / nodes[0],
                     "ratio",
                     {{"deep", kDeep},
                      {"nodes", nodes[0]},
                      {"ratio_of_order_1", nodes[1] / nodes[0]},
                      {"ratio_of_order_2", nodes[2] / nodes[0]}}};
}

}  // namespace tagflow::apps
