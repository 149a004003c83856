// MatrixDeterminant, LogMatrixDeterminant, Lu: by elimination with pivots.
#include <Eigen/LU>
#include <cmath>

#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/batch.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

namespace {

// A determinant as a number of absolute value 1, or 0, and the logarithm of
// its absolute value.
template <class Scalar>
struct LogDeterminant {
  Scalar sign = Scalar(1);
  RealScalar<Scalar> log = 0;
};

template <class T>
auto log_determinant(const DenseMatrix<T>& matrix) {
  using Scalar = MatrixScalar<T>;
  LogDeterminant<Scalar> det;
  if (matrix.size() == 0) return det;
  const Eigen::PartialPivLU<DenseMatrix<T>> lu(matrix);
  det.sign = Scalar(lu.permutationP().determinant());
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    const Scalar pivot = lu.matrixLU()(i, i);
    const auto size = std::abs(pivot);
    det.log += std::log(size);
    det.sign *= size == 0 ? Scalar(0) : pivot / size;
  }
  return det;
}

template <class T>
class DeterminantKernel : public CubicKernel {
 public:
  explicit DeterminantKernel(const KernelInfo& info)
      : CubicKernel(0.4), has_sign_(info.num_outputs() == 2) {}

  Status compute(KernelContext& context) const override {
    using Scalar = MatrixScalar<T>;
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    TAGFLOW_ASSIGN(const Shape shape, batch_shape(input, {}));
    TAGFLOW_ASSIGN(Tensor * first, context.allocate_output(0, shape));
    Tensor* log = first;
    if (has_sign_) {
      TAGFLOW_ASSIGN(log, context.allocate_output(1, shape));
    }
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      const auto det = log_determinant<T>(matrix_at<T>(input, i));
      if (has_sign_) {
        first->mutable_data<T>()[i] = static_cast<T>(det.sign);
        log->mutable_data<T>()[i] = static_cast<T>(Scalar(det.log));
      } else {
        first->mutable_data<T>()[i] =
            static_cast<T>(det.sign * std::exp(det.log));
      }
      return static_cast<const char*>(nullptr);
    });
  }

 private:
  bool has_sign_;
};

// Both triangles in one matrix, and the permutation of the rows.
template <class T, class Index>
class LuKernel : public CubicKernel {
 public:
  explicit LuKernel(const KernelInfo&) : CubicKernel(0.4) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    const int64_t side = input.dim(input.rank() - 1);
    TAGFLOW_ASSIGN(const Shape rows, batch_shape(input, {side}));
    TAGFLOW_ASSIGN(Tensor * lu, context.allocate_output(0, input.shape()));
    TAGFLOW_ASSIGN(Tensor * order, context.allocate_output(1, rows));
    if (lu->num_elements() == 0) return {};
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      const Eigen::PartialPivLU<DenseMatrix<T>> made(matrix_at<T>(input, i));
      if (!(made.matrixLU().diagonal().cwiseAbs().minCoeff() > 0))
        return "is not invertible";
      set_matrix<T>(*lu, i, made.matrixLU());
      const auto& to = made.permutationP().indices();
      for (int64_t row = 0; row < side; ++row)
        order->mutable_data<Index>()[i * side + to[row]] = Index(row);
      return static_cast<const char*>(nullptr);
    });
  }
};

}  // namespace

void register_linalg_determinant_kernels(KernelRegistry& registry) {
  for_each<float, double, Half, Complex64, Complex128>(
      [&]<class T>(TypeTag<T>) {
        const DataType dtype = kDataTypeOf<T>;
        for (const char* op : {"MatrixDeterminant", "LogMatrixDeterminant"})
          registry.add<DeterminantKernel<T>>(op, {{"T", {dtype}}});
        registry.add<LuKernel<T, int32_t>>(
            "Lu", {{"T", {dtype}}, {"output_idx_type", {DataType::kInt32}}});
        registry.add<LuKernel<T, int64_t>>(
            "Lu", {{"T", {dtype}}, {"output_idx_type", {DataType::kInt64}}});
      });
}

}  // namespace tagflow::devices
