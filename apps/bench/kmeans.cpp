// Workloads: the main job.
//
//   kmeans_scaling  --trips of k-means with the points split over 2 CPU devices
//                   and 2 workers, against 1 of each; two_workers is the same
//                   of 1 device with 2 workers, which share each kernel;
//                   two_apart is what the machine allows, as of loop_scaling
#include <algorithm>
#include <future>
#include <random>

#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "apps/examples/kmeans/graph.h"
#include "apps/examples/kmeans/progress.h"

namespace tagflow::apps {
namespace {

constexpr int64_t kFeatures = 784, kClusters = 10;  // as of the main job

// Noise, which takes far more trips to converge than are measured.
kmeans::Problem make_problem(int64_t points) {
  std::mt19937 random(1);
  kmeans::Problem problem;
  problem.images = Tensor::make(DataType::kUInt8, {points, kFeatures});
  for (uint8_t& value : problem.images.mutable_flat<uint8_t>())
    value = uint8_t(random());
  problem.start = Tensor::make(DataType::kFloat, {kClusters, kFeatures});
  for (float& value : problem.start.mutable_flat<float>())
    value = float(random() % 256) / 255;
  return problem;
}

// Trips on some devices and workers.
class Trips {
 public:
  static Result<Trips> make(const kmeans::Problem& problem, int64_t trips,
                            int devices, int workers,
                            const BenchOptions& options) {
    TAGFLOW_ASSIGN(kmeans::KMeansGraph made, kmeans::build_graph(devices));
    const BenchGraph graph{std::move(made.graph), made.feeds, made.fetches, {}};
    EngineOptions engine = options.engine;
    engine.workers = workers;
    engine.devices = fmt::format("cpu:{}", devices);
    TAGFLOW_ASSIGN(const auto session, to_session_options(engine));
    Trips result(problem, trips);
    TAGFLOW_ASSIGN(result.run_, PreparedRun::make(graph, session));
    TAGFLOW_RETURN_IF_ERROR(result.seconds_per_trip().status());  // warms up
    return result;
  }

  // The seconds of a run, minus those of a run of 0 trips.
  Result<double> seconds_per_trip() {
    TAGFLOW_ASSIGN(const double base, seconds(0));
    TAGFLOW_ASSIGN(const double full, seconds(trips_));
    return (full - base) / double(trips_);
  }

 private:
  Trips(const kmeans::Problem& problem, int64_t trips)
      : problem_(problem), trips_(trips) {}

  Result<double> seconds(int64_t limit) {
    const Tensor feeds[] = {problem_.images, problem_.start,
                            Tensor::scalar(limit)};
    return run_.time(feeds);
  }

  kmeans::Problem problem_;
  int64_t trips_;
  PreparedRun run_;
};

}  // namespace

Result<Measurement> measure_kmeans_scaling(const BenchOptions& options) {
  static const Status registered =
      kmeans::register_progress_op(kmeans::ProgressStyle::kNone);
  TAGFLOW_RETURN_IF_ERROR(registered);
  const int64_t points = options.nodes > 0 ? options.nodes : 60'000;
  const int64_t trips = options.trips > 0 ? options.trips : 10;
  const kmeans::Problem problem = make_problem(points);
  const auto make = [&](int devices, int workers) {
    return Trips::make(problem, trips, devices, workers, options);
  };
  TAGFLOW_ASSIGN(Trips one, make(1, 1));
  TAGFLOW_ASSIGN(Trips another, make(1, 1));
  TAGFLOW_ASSIGN(Trips split, make(2, 2));
  TAGFLOW_ASSIGN(Trips shared, make(1, 2));
  // Alternates, so that a change in the machine's speed affects all.
  std::vector<double> ratios, ratios_shared, ratios_apart, singles;
  for (int i = 0; i < options.repeats; ++i) {
    TAGFLOW_ASSIGN(const double single, one.seconds_per_trip());
    TAGFLOW_ASSIGN(const double on_two, split.seconds_per_trip());
    TAGFLOW_ASSIGN(const double by_two, shared.seconds_per_trip());
    auto beside = std::async(std::launch::async,
                             [&] { return another.seconds_per_trip(); });
    const Result<double> here = one.seconds_per_trip();
    TAGFLOW_ASSIGN(const double there, beside.get());
    TAGFLOW_RETURN_IF_ERROR(here.status());
    singles.push_back(single);
    ratios.push_back(single / on_two);
    ratios_shared.push_back(single / by_two);
    ratios_apart.push_back(2 * single / std::max(*here, there));
  }
  return Measurement{
      "kmeans_scaling",
      median(std::move(ratios)),
      "ratio",
      {{"trips", trips},
       {"points", points},
       {"features", kFeatures},
       {"clusters", kClusters},
       {"devices", {1, 2}},
       {"workers", {1, 2}},
       {"repeats", options.repeats},
       {"ms_per_trip_1_device", median(std::move(singles)) * 1e3},
       {"two_workers", median(std::move(ratios_shared))},
       {"two_apart", median(std::move(ratios_apart))}}};
}

}  // namespace tagflow::apps
