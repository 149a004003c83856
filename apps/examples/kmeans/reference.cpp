#include "apps/examples/kmeans/reference.h"

#include <Eigen/Core>
#include <cmath>

namespace tagflow::kmeans {
namespace {

using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;

constexpr float kTolerance = 1e-3f;

Matrix to_points(const Tensor& images) {
  using Bytes =
      Eigen::Matrix<uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Bytes>(images.data<uint8_t>(), images.dim(0),
                                 images.dim(1))
             .cast<float>() /
         255.0f;
}

ConstMap to_matrix(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.dim(0), tensor.dim(1)};
}

Tensor to_tensor(const Matrix& matrix) {
  return Tensor::of<float>({matrix.rows(), matrix.cols()},
                           std::span(matrix.data(), size_t(matrix.size())));
}

}  // namespace

Solution solve_by_eigen(const Problem& problem) {
  const Matrix points = to_points(problem.images);
  const Eigen::VectorXf norms = points.rowwise().squaredNorm();
  Matrix centroids = to_matrix(problem.start);
  std::vector<int64_t> assignments(size_t(points.rows()), -1);
  Solution solution;
  solution.changed = 1;
  while (solution.changed > 0 && solution.trips < problem.max_iterations) {
    Matrix distance = -2.0f * points * centroids.transpose();
    distance.colwise() += norms;
    distance.rowwise() += centroids.rowwise().squaredNorm().transpose();

    Matrix sums = Matrix::Zero(centroids.rows(), centroids.cols());
    Eigen::VectorXf counts = Eigen::VectorXf::Zero(centroids.rows());
    double inertia = 0;
    solution.changed = 0;
    for (Eigen::Index i = 0; i < points.rows(); ++i) {
      Eigen::Index nearest = 0;
      inertia += distance.row(i).minCoeff(&nearest);
      solution.changed += assignments[size_t(i)] != nearest ? 1 : 0;
      assignments[size_t(i)] = nearest;
      sums.row(nearest) += points.row(i);
      counts[nearest] += 1;
    }
    for (Eigen::Index c = 0; c < centroids.rows(); ++c) {
      if (counts[c] > 0) centroids.row(c) = sums.row(c) / counts[c];
    }
    solution.inertia = float(inertia);
    ++solution.trips;
  }
  solution.centroids = to_tensor(centroids);
  solution.assignments = Tensor::of<int64_t>(
      {points.rows()}, std::span<const int64_t>(assignments));
  return solution;
}

Status check_equal(const Problem& problem, const Solution& solution,
                   const Solution& reference) {
  const ConstMap ours = to_matrix(solution.centroids);
  const ConstMap theirs = to_matrix(reference.centroids);
  for (Eigen::Index c = 0; c < ours.rows(); ++c) {
    const float apart = (ours.row(c) - theirs.row(c)).norm();
    if (!(apart <= kTolerance * theirs.row(c).norm())) {
      return invalid_argument(
          "[kmeans] centroid {} differs by {}, its length is {}", c, apart,
          theirs.row(c).norm());
    }
  }
  const Matrix points = to_points(problem.images);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const auto a = solution.assignments.flat<int64_t>()[size_t(i)];
    const auto b = reference.assignments.flat<int64_t>()[size_t(i)];
    if (a == b) continue;
    const float to_a = (points.row(i) - theirs.row(a)).squaredNorm();
    const float to_b = (points.row(i) - theirs.row(b)).squaredNorm();
    if (!(std::abs(to_a - to_b) <= kTolerance * to_b)) {
      return invalid_argument(
          "[kmeans] point {} is in cluster {} at distance {}, but should be in "
          "cluster {} at distance {}",
          i, a, std::sqrt(to_a), b, std::sqrt(to_b));
    }
  }
  return {};
}

}  // namespace tagflow::kmeans
