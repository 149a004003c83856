#include "apps/examples/kmeans/graph.h"

#include "apps/examples/kmeans/progress.h"
#include "graph/builder/builder.h"

namespace tagflow::kmeans {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

// The points of one device: loop constants.
struct Shard {
  std::string device;
  Output points;   // [share, features]
  Output norms;    // [share, 1], |x|^2
  Output ones;     // [share]
  Output nowhere;  // [share], the assignments before the first trip
};

// The loop's variables.
struct State {
  Output trips, changed, inertia, centroids;
  std::vector<Output> assignments;  // of each shard
  TAGFLOW_FIELDS(trips, changed, inertia, centroids, assignments)
};

// The results of a shard in a trip.
struct Share {
  Output assignments, changed, inertia;
  Output sums;    // [k, features], of the points of each cluster
  Output counts;  // [k]
};

// Rows of `images`, from share i of `shards` to the next.
Output share_of(const Scope& s, const Output& images, int i, int shards) {
  const Output rows = ops::slice(
      s, ops::shape(s, images, {.out_type = DataType::kInt64}), {0}, {1});
  const auto begin_of = [&](int share) {
    return ops::floor_div(s, ops::mul(s, rows, share), shards);
  };
  const Output begin = begin_of(i);
  const Output size = ops::sub(s, begin_of(i + 1), begin);
  const auto with_features = [&](const Output& of_rows, int64_t of_features) {
    return ops::concat(
        s, {of_rows, ops::constant(s, Tensor::vector<int64_t>({of_features}))},
        0);
  };
  return ops::slice(s, images, with_features(begin, 0),
                    with_features(size, -1));
}

Shard make_shard(const Scope& s, const Output& images, int i, int shards) {
  Shard shard;
  if (shards > 1) shard.device = fmt::format("/cpu:{}", i);
  const Scope on = s.with_device(shard.device);
  const Output share = shards > 1 ? share_of(on, images, i, shards) : images;
  shard.points =
      ops::real_div(on, ops::cast(on, share, DataType::kFloat), 255.0f);
  shard.norms = ops::reduce_sum(on, ops::square(on, shard.points), {1},
                                {.keep_dims = true});
  const Output count =
      ops::reshape(on, ops::slice(on, ops::shape(on, share), {0}, {1}), {1});
  shard.ones = ops::fill(on, count, 1.0f);
  shard.nowhere = ops::fill(on, count, ops::constant(on, int64_t{-1}));
  return shard;
}

// [share, k]: |x - c|^2 = |x|^2 - 2 x c + |c|^2.
Output distances(const Scope& s, const Shard& shard, const Output& centroids) {
  const Output products =
      ops::matmul(s, shard.points, centroids, {.transpose_b = true});
  const Output norms = ops::reduce_sum(s, ops::square(s, centroids), {1});
  return ops::add(s, ops::sub(s, shard.norms, ops::mul(s, products, 2)), norms);
}

// `before` has the previous assignments of the shard's points, `k` is the
// number of clusters.
Share assign(const Scope& in, const Shard& shard, const Output& centroids,
             const Output& before, const Output& k) {
  const Scope s = in.with_device(shard.device);
  const Output distance = distances(s, shard, centroids);
  Share share;
  share.assignments = ops::arg_min(s, distance, 1);
  share.changed = ops::reduce_sum(
      s, ops::cast(s, ops::not_equal(s, share.assignments, before),
                   DataType::kInt64));
  share.inertia = ops::reduce_sum(s, ops::reduce_min(s, distance, {1}));
  share.sums = ops::unsorted_segment_sum(s, shard.points, share.assignments, k);
  share.counts = ops::unsorted_segment_sum(s, shard.ones, share.assignments, k);
  return share;
}

Output sum_of(const Scope& s, const std::vector<Share>& shares,
              Output Share::*field) {
  std::vector<Output> outputs;
  for (const Share& share : shares) outputs.push_back(share.*field);
  return ops::add_n(s, outputs);
}

// The mean of each cluster's points; an empty cluster keeps its centroid.
Output means(const Scope& s, const Output& sums, const Output& counts,
             const Output& centroids) {
  const Output column = ops::expand_dims(s, counts, 1);
  return ops::select(s, ops::greater(s, column, 0),
                     ops::real_div(s, sums, ops::maximum(s, column, 1)),
                     centroids);
}

State trip(const Scope& in, const std::vector<Shard>& shards, const Output& k,
           const State& v) {
  std::vector<Share> shares;
  for (size_t i = 0; i < shards.size(); ++i)
    shares.push_back(assign(in, shards[i], v.centroids, v.assignments[i], k));
  const Scope s = in.with_device(shards[0].device);
  State next;
  next.changed = sum_of(s, shares, &Share::changed);
  next.inertia = sum_of(s, shares, &Share::inertia);
  next.trips = progress(s, ops::add(s, v.trips, 1), next.changed, next.inertia);
  next.centroids = means(s, sum_of(s, shares, &Share::sums),
                         sum_of(s, shares, &Share::counts), v.centroids);
  for (const Share& share : shares)
    next.assignments.push_back(share.assignments);
  return next;
}

}  // namespace

Result<KMeansGraph> build_graph(int shards) {
  Graph graph;
  const Scope s(graph);
  const Output images = ops::placeholder(s.named("images"), DataType::kUInt8,
                                         PartialShape({-1, -1}));
  const Output start = ops::placeholder(s.named("start"), DataType::kFloat,
                                        PartialShape({-1, -1}));
  const Output max_iterations = ops::placeholder(
      s.named("max_iterations"), DataType::kInt64, PartialShape::scalar());
  std::vector<Shard> parts;
  for (int i = 0; i < shards; ++i)
    parts.push_back(make_shard(s, images, i, shards));
  const std::string& home = parts[0].device;
  const Output k =
      ops::squeeze(s, ops::slice(s, ops::shape(s, start), {0}, {1}));

  State first{ops::constant(s, int64_t{0}),
              ops::constant(s, int64_t{1}),
              ops::constant(s, 0.0f),
              start,
              {}};
  for (const Shard& shard : parts) first.assignments.push_back(shard.nowhere);
  const State last = while_loop(
      s.named("kmeans"),
      [&](const Scope& in, const State& v) {
        const Scope on = in.with_device(home);
        return ops::logical_and(on, ops::greater(on, v.changed, 0),
                                ops::less(on, v.trips, max_iterations));
      },
      [&](const Scope& in, const State& v) { return trip(in, parts, k, v); },
      first);
  const Output assignments =
      shards > 1 ? ops::concat(s.with_device(home), last.assignments, 0)
                 : last.assignments[0];
  TAGFLOW_RETURN_IF_ERROR(s.status());

  KMeansGraph result;
  for (const Output& feed : {images, start, max_iterations})
    result.feeds.push_back(feed.name());
  for (const Output& fetch :
       {last.trips, last.changed, last.inertia, last.centroids, assignments})
    result.fetches.push_back(fetch.name());
  result.graph = std::move(graph);
  return result;
}

Result<Solution> solve_by_graph(const Problem& problem, int shards,
                                const actors::SessionOptions& options,
                                actors::Trace* trace, actors::RunStats* stats) {
  TAGFLOW_ASSIGN(KMeansGraph kmeans, build_graph(shards));
  TAGFLOW_ASSIGN(auto session, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(kmeans.graph));
  actors::RunOptions run;
  run.trace = trace;
  TAGFLOW_ASSIGN(
      const std::vector<Tensor> results,
      session->run({{kmeans.feeds[0], problem.images},
                    {kmeans.feeds[1], problem.start},
                    {kmeans.feeds[2], Tensor::scalar(problem.max_iterations)}},
                   kmeans.fetches, {}, run, stats));
  return Solution{results[0].scalar_value<int64_t>(),
                  results[1].scalar_value<int64_t>(),
                  results[2].scalar_value<float>(), results[3], results[4]};
}

}  // namespace tagflow::kmeans
