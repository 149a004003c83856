#include "apps/examples/kmeans/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "actors/watch/observer.h"
#include "apps/examples/kmeans/progress.h"
#include "apps/examples/kmeans/reference.h"

using namespace tagflow;
using kmeans::Problem;
using kmeans::Solution;

namespace {

// Points anywhere: with bytes as random as these no distances are the same.
Problem make_problem(int64_t points, int64_t clusters, uint64_t seed) {
  constexpr int64_t kFeatures = 6;
  std::mt19937_64 random(seed);
  Problem problem;
  problem.images = Tensor::make(DataType::kUInt8, {points, kFeatures});
  for (uint8_t& value : problem.images.mutable_flat<uint8_t>())
    value = uint8_t(random());
  Result<Tensor> start = kmeans::draw_start(problem.images, clusters, seed);
  REQUIRE(start.ok());
  problem.start = *start;
  return problem;
}

void register_once() {
  static const Status registered =
      kmeans::register_progress_op(kmeans::ProgressStyle::kNone);
  REQUIRE(registered.ok());
}

actors::SessionOptions on_cpus(int devices, int workers) {
  actors::SessionOptions options;
  options.workers = workers;
  options.devices = fmt::format("cpu:{}", devices);
  return options;
}

Result<Solution> solve(const Problem& problem, int shards, int workers = 2) {
  register_once();
  return kmeans::solve_by_graph(problem, shards, on_cpus(shards, workers),
                                nullptr, nullptr);
}

void check_shards(const Problem& problem, int shards) {
  INFO(problem.images.dim(0), " points, ", problem.start.dim(0), " clusters, ",
       shards, " shards");
  const Result<Solution> one = solve(problem, 1);
  REQUIRE_MESSAGE(one.ok(), one.status().to_string());
  const Result<Solution> split = solve(problem, shards);
  REQUIRE_MESSAGE(split.ok(), split.status().to_string());
  CHECK(split->trips == one->trips);
  CHECK(split->changed == one->changed);
  CHECK(split->inertia == doctest::Approx(one->inertia).epsilon(1e-4));
  CHECK(std::ranges::equal(split->assignments.flat<int64_t>(),
                           one->assignments.flat<int64_t>()));
  const Status equal = kmeans::check_equal(problem, *split, *one);
  CHECK_MESSAGE(equal.ok(), equal.to_string());
}

// Sees of how many points each device computes distances.
class ShareObserver : public actors::Observer {
 public:
  void on_fired(const actors::Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override {
    if (node.op() != "ArgMin") return;
    const std::lock_guard lock(mutex_);
    shares[std::string(location.device)].insert(outputs[0].dim(0));
  }

  std::map<std::string, std::set<int64_t>> shares;

 private:
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("k-means: each device assigns the points of its share") {
  register_once();
  const Problem problem = make_problem(101, 3, 1);
  auto made = kmeans::build_graph(3);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  auto session = actors::Session::create(on_cpus(3, 2));
  REQUIRE(session.ok());
  REQUIRE((*session)->extend(made->graph).ok());
  ShareObserver observer;
  actors::RunOptions run;
  run.observer = &observer;
  const auto results =
      (*session)->run({{made->feeds[0], problem.images},
                       {made->feeds[1], problem.start},
                       {made->feeds[2], Tensor::scalar(int64_t{5})}},
                      made->fetches, {}, run);
  REQUIRE_MESSAGE(results.ok(), results.status().to_string());
  const std::string prefix = "/job:localhost/replica:0/task:0/device:CPU:";
  CHECK(observer.shares ==
        std::map<std::string, std::set<int64_t>>{
            {prefix + "0", {33}}, {prefix + "1", {34}}, {prefix + "2", {34}}});
}

TEST_CASE("k-means: points on several devices give the same clusters") {
  for (uint64_t seed = 1; seed <= 8; ++seed)
    for (const int shards : {2, 3, 5})
      check_shards(
          make_problem(40 + int64_t(seed) * 23, 2 + int64_t(seed % 4), seed),
          shards);
}

TEST_CASE("k-means: some devices may have no points") {
  check_shards(make_problem(3, 2, 1), 7);
  check_shards(make_problem(1, 1, 1), 2);
}

TEST_CASE("a graph of k-means agrees with plain Eigen, split or not") {
  const Problem problem = make_problem(500, 4, 3);
  const Solution reference = kmeans::solve_by_eigen(problem);
  for (const int shards : {1, 2, 4})
    for (const int workers : {1, 2}) {
      const Result<Solution> solution = solve(problem, shards, workers);
      REQUIRE_MESSAGE(solution.ok(), solution.status().to_string());
      CHECK(solution->trips == reference.trips);
      const Status equal = kmeans::check_equal(problem, *solution, reference);
      CHECK_MESSAGE(equal.ok(), equal.to_string());
    }
}

TEST_CASE("k-means: the loop stops at max_iterations, on all devices") {
  Problem problem = make_problem(300, 5, 2);
  for (const int64_t trips : {0, 1, 2}) {
    problem.max_iterations = trips;
    const Result<Solution> solution = solve(problem, 2);
    REQUIRE_MESSAGE(solution.ok(), solution.status().to_string());
    CHECK(solution->trips == trips);
    if (trips == 0) CHECK(solution->assignments.flat<int64_t>()[299] == -1);
  }
}
