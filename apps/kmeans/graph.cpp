#include "apps/kmeans/graph.h"

#include <limits>

#include "apps/kmeans/progress.h"
#include "graph/builder/builder.h"

namespace tagflow::kmeans {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

// The loop's variables, in order.
enum Variable : size_t { kTrips, kChanged, kInertia, kCentroids, kAssignments };

// What every trip uses and none changes.
struct Constants {
  Output points;  // [points, features]
  Output norms;   // [points, 1], |x|^2
  Output ones;    // [points]
  Output k;       // the number of clusters
};

// [points, k]: |x - c|^2 = |x|^2 - 2 x c + |c|^2.
Output distances(const Scope& s, const Constants& c, const Output& centroids) {
  const Output products =
      ops::matmul(s, c.points, centroids, {.transpose_b = true});
  const Output norms = ops::reduce_sum(s, ops::square(s, centroids), {1});
  return ops::add(s, ops::sub(s, c.norms, ops::mul(s, products, 2)), norms);
}

// The mean of each cluster's points; an empty cluster keeps its centroid.
Output means(const Scope& s, const Constants& c, const Output& assignments,
             const Output& centroids) {
  const Output sums = ops::unsorted_segment_sum(s, c.points, assignments, c.k);
  const Output counts = ops::expand_dims(
      s, ops::unsorted_segment_sum(s, c.ones, assignments, c.k), 1);
  return ops::select(s, ops::greater(s, counts, 0),
                     ops::real_div(s, sums, ops::maximum(s, counts, 1)),
                     centroids);
}

Outputs trip(const Scope& s, const Constants& c, const Outputs& v) {
  const Output distance = distances(s, c, v[kCentroids]);
  const Output assignments = ops::arg_min(s, distance, 1);
  const Output changed = ops::reduce_sum(
      s, ops::cast(s, ops::not_equal(s, assignments, v[kAssignments]),
                   DataType::kInt64));
  const Output inertia = ops::reduce_sum(s, ops::reduce_min(s, distance, {1}));
  const Output centroids = means(s, c, assignments, v[kCentroids]);
  const Output trips = ops::add(s, v[kTrips], 1);
  return {progress(s, trips, changed, inertia), changed, inertia, centroids,
          assignments};
}

}  // namespace

Result<KMeansGraph> build_graph(int64_t max_iterations) {
  Graph graph;
  const Scope s(graph);
  const Output images = ops::placeholder(s.named("images"), DataType::kUInt8,
                                         PartialShape({-1, -1}));
  const Output start = ops::placeholder(s.named("start"), DataType::kFloat,
                                        PartialShape({-1, -1}));
  Constants c;
  c.points = ops::real_div(s, ops::cast(s, images, DataType::kFloat), 255.0f);
  c.norms =
      ops::reduce_sum(s, ops::square(s, c.points), {1}, {.keep_dims = true});
  const Output count =
      ops::reshape(s, ops::slice(s, ops::shape(s, images), {0}, {1}), {1});
  c.ones = ops::fill(s, count, 1.0f);
  c.k = ops::squeeze(s, ops::slice(s, ops::shape(s, start), {0}, {1}));
  const Output nowhere = ops::fill(s, count, ops::constant(s, int64_t{-1}));

  const Outputs last = while_loop(
      s.named("kmeans"),
      [&](const Scope& in, const Outputs& v) {
        return ops::logical_and(in, ops::greater(in, v[kChanged], 0),
                                ops::less(in, v[kTrips], max_iterations));
      },
      [&](const Scope& in, const Outputs& v) { return trip(in, c, v); },
      {ops::constant(s, int64_t{0}), ops::constant(s, int64_t{1}),
       ops::constant(s, 0.0f), start, nowhere});
  TAGFLOW_RETURN_IF_ERROR(s.status());

  KMeansGraph result{{}, images.name(), start.name(), {}};
  for (const Output& output : last) result.fetches.push_back(output.name());
  result.graph = std::move(graph);
  return result;
}

Result<Solution> solve_by_graph(const Problem& problem,
                                const actors::SessionOptions& options,
                                actors::Trace* trace, actors::RunStats* stats) {
  TAGFLOW_ASSIGN(KMeansGraph kmeans, build_graph(problem.max_iterations));
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(kmeans.graph));
  actors::RunOptions run;
  run.trace = trace;
  TAGFLOW_ASSIGN(std::vector<Tensor> results,
                 session->run({{kmeans.images, problem.images},
                               {kmeans.start, problem.start}},
                              kmeans.fetches, {}, run, stats));
  return Solution{results[kTrips].scalar_value<int64_t>(),
                  results[kChanged].scalar_value<int64_t>(),
                  results[kInertia].scalar_value<float>(), results[kCentroids],
                  results[kAssignments]};
}

}  // namespace tagflow::kmeans
