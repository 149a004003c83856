// k-means: the problem, and the result of both solvers.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::kmeans {

struct Problem {
  Tensor images;  // uint8 [points, features]
  Tensor start;   // float [clusters, features], in [0, 1] as all below
  int64_t max_iterations = 300;
};

struct Solution {
  int64_t trips = 0;    // of the loop; the last one changed nothing
  int64_t changed = 0;  // assignments that the last trip changed
  float inertia = 0;    // sum of squared distances in the last trip
  Tensor centroids;     // float [clusters, features]
  Tensor assignments;   // int64 [points], to the nearest centroid
};

// `clusters` distinct points, drawn by the seed, as first centroids. Returns
// InvalidArgument if there are fewer points.
Result<Tensor> draw_start(const Tensor& images, int64_t clusters,
                          uint64_t seed);

// The share of points whose label is the most frequent one of their cluster.
// `labels` is uint8 [points].
double purity(const Solution& solution, const Tensor& labels);

// For each cluster, how many of its points have each label: [clusters][256].
std::vector<std::vector<int64_t>> count_labels(const Solution& solution,
                                               const Tensor& labels);

}  // namespace tagflow::kmeans
