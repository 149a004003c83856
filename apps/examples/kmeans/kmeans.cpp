#include "apps/examples/kmeans/kmeans.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace tagflow::kmeans {

Result<Tensor> draw_start(const Tensor& images, int64_t clusters,
                          uint64_t seed) {
  const int64_t points = images.dim(0), features = images.dim(1);
  if (clusters > points) {
    return invalid_argument("[kmeans] {} clusters need more than {} points",
                            clusters, points);
  }
  // The first places of a shuffle, by hand, since std::shuffle differs from
  // library to library.
  std::vector<int64_t> order(static_cast<size_t>(points));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  Tensor start = Tensor::make(DataType::kFloat, {clusters, features});
  float* out = start.mutable_data<float>();
  for (int64_t i = 0; i < clusters; ++i) {
    const int64_t j = i + int64_t(random() % uint64_t(points - i));
    std::swap(order[size_t(i)], order[size_t(j)]);
    const uint8_t* image = images.data<uint8_t>() + order[size_t(i)] * features;
    for (int64_t f = 0; f < features; ++f) *out++ = float(image[f]) / 255.0f;
  }
  return start;
}

std::vector<std::vector<int64_t>> count_labels(const Solution& solution,
                                               const Tensor& labels) {
  constexpr size_t kLabels = 256;
  std::vector<std::vector<int64_t>> counts(size_t(solution.centroids.dim(0)),
                                           std::vector<int64_t>(kLabels, 0));
  const auto assignments = solution.assignments.flat<int64_t>();
  const auto label = labels.flat<uint8_t>();
  for (size_t i = 0; i < assignments.size(); ++i) {
    ++counts[size_t(assignments[i])][label[i]];
  }
  return counts;
}

double purity(const Solution& solution, const Tensor& labels) {
  int64_t agreeing = 0;
  for (const std::vector<int64_t>& counts : count_labels(solution, labels)) {
    agreeing += *std::max_element(counts.begin(), counts.end());
  }
  return double(agreeing) / double(labels.num_elements());
}

}  // namespace tagflow::kmeans
