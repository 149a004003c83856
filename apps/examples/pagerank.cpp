// PageRank: the share of time that somebody who follows links at random, and
// now and then starts anew anywhere, spends on each page.
//
//   links: 0 -> 1, 0 -> 2, 1 -> 2, 2 -> 0, 3 -> 2
//                 +---------------- next -----------------------+
//                 v                                             |
//   rank = 1/n --> sum |rank - before| > eps ? --yes--> 0.15 / n +
//                 |                             0.85 sum over links into it
//                 no--> rank                    of rank[from] / degree[from]
//
// A page's share is gathered along the links and added up where they lead; the
// loop goes on until it settles.
#include <cmath>

#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kPages = 4;
constexpr double kFollow = 0.85;
const std::vector<int> kFrom = {0, 0, 1, 2, 3};
const std::vector<int> kTo = {1, 2, 2, 0, 2};

struct State {
  Output rank, before;
  TAGFLOW_FIELDS(rank, before)
};

Output pagerank(const Scope& s) {
  const auto vector = [&](const std::vector<int>& values) {
    return constant(s, Tensor::of<int>({int64_t(values.size())},
                                       std::span<const int>(values)));
  };
  const Output from = vector(kFrom), to = vector(kTo);
  const Output one = constant(s, 1.0);
  const Output ones = fill(s, {kFrom.size()}, one);
  const Output degree = unsorted_segment_sum(s, ones, from, kPages);
  const Output even = fill(s, {kPages}, real_div(s, one, kPages));
  return while_loop(
             s,
             [](const Scope& in, const State& v) {
               const Output change = abs(in, sub(in, v.rank, v.before));
               return greater(in, reduce_sum(in, change), 1e-12);
             },
             [&](const Scope& in, const State& v) {
               const Output share =
                   gather(in, real_div(in, v.rank, degree), from);
               const Output arrived =
                   unsorted_segment_sum(in, share, to, kPages);
               const Output rank =
                   add(in, mul(in, arrived, kFollow), (1 - kFollow) / kPages);
               return State{rank, v.rank};
             },
             State{even, zeros_like(s, even)})
      .rank;
}

// The rank must be what one more step makes of it.
bool is_settled(std::span<const double> rank) {
  std::vector<double> next(kPages, (1 - kFollow) / kPages);
  std::vector<double> degree(kPages, 0);
  for (const int page : kFrom) ++degree[size_t(page)];
  for (size_t i = 0; i < kFrom.size(); ++i) {
    const auto from = size_t(kFrom[i]);
    next[size_t(kTo[i])] += kFollow * rank[from] / degree[from];
  }
  double difference = 0;
  for (size_t i = 0; i < kPages; ++i) difference += std::abs(next[i] - rank[i]);
  return difference < 1e-11;
}

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  const Output rank = pagerank(s);
  const auto result = examples::run(s, {}, {rank})[0];
  const auto ranks = result.flat<double>();
  for (size_t page = 0; page < kPages; ++page)
    std::printf("page %zu: %.4f\n", page, ranks[page]);
  return is_settled(ranks) ? 0 : 1;
}
