// k-means over workers, each of which has points of its own: they are made
// where they are, and stay there.
//
//       task 0                            each task k
//
//                                         seed + k -> points
//                                                       |
//   +-> centroids ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~ ~> the nearest one of each
//   |                                                   |
//   +-- means <-- sums and counts of all <~ ~ ~ sums and counts of the task
//   |
//   +-> have centroids moved? ~ ~ ~ ~ ~ ~ ~ ~ ~ > next trip, or the end
//
// What crosses processes (~) in a trip does not grow with the points. It is one
// graph and one step: the loop ends at each worker for itself.
//
// usage: cluster_kmeans [FILE]   on the workers of a cluster file; without one,
//                                on three of this process, through sockets
#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "apps/examples/run.h"
#include "net/config/cluster_file.h"
#include "net/config/secret_file.h"
#include "net/master/cluster.h"
#include "net/worker/worker.h"

using namespace tagflow;         // NOLINT: an example
using namespace tagflow::graph;  // NOLINT

namespace {

constexpr int kClusters = 8, kPoints = 4000;  // the points of each task
constexpr int kMostTrips = 1000;

struct Workers {
  std::vector<std::unique_ptr<net::Worker>> ours;  // none for a cluster file
  std::vector<std::string> names;                  // as devices of graphs
  std::shared_ptr<net::Cluster> master;            // goes first
};

Result<Workers> connect(net::ClusterOptions options, Workers workers) {
  for (const auto& member : options.members)
    workers.names.push_back(
        fmt::format("/job:{}/task:{}", member.task.job, member.task.index));
  TAGFLOW_ASSIGN(workers.master, net::Cluster::connect(std::move(options)));
  return workers;
}

Result<Workers> workers_of(const char* path) {
  TAGFLOW_ASSIGN(const net::ClusterFile file, net::read_cluster_file(path));
  net::ClusterOptions options;
  options.name = file.name;
  TAGFLOW_ASSIGN(options.secret, net::read_secret(file.secret_file));
  for (const auto& entry : file.tasks)
    options.members.push_back({entry.task, entry.address});
  return connect(std::move(options), {});
}

Result<Workers> start_workers(uint32_t count) {
  std::random_device draw;
  net::ClusterOptions options;
  options.name = "kmeans";
  for (int i = 0; i < 8; ++i) options.secret += fmt::format("{:08x}", draw());
  Workers workers;
  for (uint32_t k = 0; k < count; ++k) {
    net::WorkerOptions worker;
    worker.task = {"worker", k};
    worker.cluster = options.name;
    worker.secret = options.secret;
    // They would say that their master leaves when the program ends.
    worker.on_event = [](const net::Event&) {};
    TAGFLOW_ASSIGN(auto started, net::Worker::start(std::move(worker)));
    options.members.push_back({{"worker", k}, {"localhost", started->port()}});
    workers.ours.push_back(std::move(started));
  }
  return connect(std::move(options), std::move(workers));
}

struct State {
  Output trips, moved, centroids;
  TAGFLOW_FIELDS(trips, moved, centroids)
};

// Points of a square. Their coordinates are integers, so that sums are exact in
// any order: the number of processes does not change the result.
Output make_points(const Scope& s, const Output& seed, int k) {
  const Output own =
      ops::add(s, seed, ops::constant(s, Tensor::vector<int32_t>({0, k})));
  const Output shape = ops::constant(s, Tensor::vector<int32_t>({kPoints, 2}));
  const Output uniform = s.op("StatelessRandomUniform", {shape, own},
                              {{"dtype", DataType::kDouble}});
  return ops::floor(s, ops::mul(s, uniform, 1024.0));
}

// The sums and the counts of the points nearest to each centroid.
Outputs assign(const Scope& s, const Output& points, const Output& centroids) {
  const Output apart = ops::sub(s, ops::expand_dims(s, points, 1), centroids);
  const Output nearest =
      ops::arg_min(s, ops::reduce_sum(s, ops::square(s, apart), {2}), 1);
  const Output ones =
      ops::fill(s, {kPoints}, ops::constant(s, Tensor::scalar(1.0)));
  return {ops::unsorted_segment_sum(s, points, nearest, kClusters),
          ops::unsorted_segment_sum(s, ones, nearest, kClusters)};
}

// A centroid without points stays where it is.
Output means(const Scope& s, const Output& sums, const Output& counts,
             const Output& centroids) {
  const Output column = ops::expand_dims(s, counts, 1);
  return ops::select(s, ops::greater(s, column, 0),
                     ops::real_div(s, sums, ops::maximum(s, column, 1)),
                     centroids);
}

// Part k of the points is at devices[k]; "" leaves that to placement.
State kmeans(const Scope& s, const std::vector<std::string>& devices) {
  const Output seed = ops::placeholder(s.named("seed"), DataType::kInt32, {2});
  Outputs points;
  for (size_t k = 0; k < devices.size(); ++k)
    points.push_back(make_points(s.with_device(devices[k]), seed, int(k)));
  const Scope home = s.with_device(devices[0]);
  const State first{ops::constant(home, 0), ops::constant(home, true),
                    ops::slice(home, points[0], {0, 0}, {kClusters, 2})};
  return while_loop(
      s,
      [&](const Scope& in, const State& v) {
        const Scope here = in.with_device(devices[0]);
        return ops::logical_and(here, v.moved,
                                ops::less(here, v.trips, kMostTrips));
      },
      [&](const Scope& in, const State& v) {
        Outputs sums, counts;
        for (size_t k = 0; k < devices.size(); ++k) {
          const Outputs share =
              assign(in.with_device(devices[k]), points[k], v.centroids);
          sums.push_back(share[0]);
          counts.push_back(share[1]);
        }
        const Scope here = in.with_device(devices[0]);
        const Output next = means(here, ops::add_n(here, sums),
                                  ops::add_n(here, counts), v.centroids);
        const Output moved =
            ops::reduce_any(here, ops::not_equal(here, next, v.centroids));
        return State{ops::add(here, v.trips, 1), moved, next};
      },
      first);
}

// The trips, and the centroids.
std::vector<Tensor> solve(const std::vector<std::string>& devices,
                          const actors::SessionOptions& options) {
  Graph graph;
  const Scope s(graph);
  const State last = kmeans(s, devices);
  return examples::run(s, {{"seed", Tensor::vector<int32_t>({1, 0})}},
                       {last.trips, last.centroids}, options);
}

}  // namespace

int main(int argc, char** argv) {
  const Result<Workers> workers =
      argc > 1 ? workers_of(argv[1]) : start_workers(3);
  if (!workers.ok()) {
    std::fprintf(stderr, "%s\n", workers.status().to_string().c_str());
    return 1;
  }
  actors::SessionOptions options;
  options.backend = workers->master;
  const auto ours = solve(workers->names, options);
  const auto expected =
      solve(std::vector<std::string>(workers->names.size()), {});
  const int trips = ours[0].scalar_value<int32_t>();
  const bool is_same = trips > 1 && trips < kMostTrips &&
                       identical(ours[0], expected[0]) &&
                       identical(ours[1], expected[1]);
  std::printf("%zu workers with %d points each: %d trips, %s\n",
              workers->names.size(), kPoints, trips,
              is_same ? "with the centroids of one process"
                      : "which one process does not confirm");
  return is_same ? 0 : 1;
}
