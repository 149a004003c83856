// Batches of matrices, which are decomposed one by one.
#pragma once

#include <Eigen/Core>
#include <functional>

#include "devices/kernel.h"

namespace tagflow::devices {

// Half precision is computed in single precision.
template <class T>
using MatrixScalar =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>,
                       float, T>;
template <class T>
using DenseMatrix =
    Eigen::Matrix<MatrixScalar<T>, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using RealScalar = typename Eigen::NumTraits<T>::Real;

// The number of matrices in the last two dimensions. InvalidArgument for a
// tensor of fewer than two, and for matrices that must be square but are not.
Result<int64_t> count_matrices(const KernelContext& context, int input,
                               bool must_be_square);

// The shape of a tensor without its last two dimensions, followed by `dims`.
Result<Shape> batch_shape(const Tensor& matrices,
                          std::initializer_list<int64_t> dims);

// Matrix i of a tensor. REQUIRES: it exists, with elements T.
template <class T>
DenseMatrix<T> matrix_at(const Tensor& tensor, int64_t i) {
  using Rows =
      Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t rows = tensor.dim(tensor.rank() - 2);
  const int64_t columns = tensor.dim(tensor.rank() - 1);
  return Eigen::Map<const Rows>(tensor.data<T>() + i * rows * columns, rows,
                                columns)
      .template cast<MatrixScalar<T>>();
}

// Stores elements from `at` on, row by row.
template <class T, class Expression>
void set_elements(Tensor& tensor, int64_t at, const Expression& elements) {
  T* to = tensor.mutable_data<T>() + at;
  for (int64_t i = 0; i < elements.rows(); ++i)
    for (int64_t j = 0; j < elements.cols(); ++j)
      *to++ = static_cast<T>(elements(i, j));
}
// Stores matrix i of a tensor of matrices like this one.
template <class T, class Expression>
void set_matrix(Tensor& tensor, int64_t i, const Expression& matrix) {
  set_elements<T>(tensor, i * matrix.rows() * matrix.cols(), matrix);
}

// Calls body(i) for each i < count, on several workers if that pays at so
// many nanoseconds each. body returns the error of matrix i, or null; of
// several errors the kernel reports that of the lowest i.
Status for_each_matrix(const KernelContext& context, int64_t count, double cost,
                       const std::function<const char*(int64_t)>& body);

// A kernel that takes so many nanoseconds for each n * n * n of a matrix whose
// longer side is n.
class CubicKernel : public Kernel {
 public:
  explicit CubicKernel(double factor) : factor_(factor) {}
  double cost(const KernelContext& context) const override;

 protected:
  // The cost of one matrix of a tensor.
  double matrix_cost(const Tensor& tensor) const;

 private:
  double factor_;
};

}  // namespace tagflow::devices
