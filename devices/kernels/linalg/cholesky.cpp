// Cholesky and its gradient.
#include <Eigen/Cholesky>
#include <limits>

#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/batch.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

namespace {

// Reads the lower triangle. A matrix that is not positive definite gives NaN,
// as in TensorFlow.
template <class T>
class CholeskyKernel : public CubicKernel {
 public:
  explicit CholeskyKernel(const KernelInfo&) : CubicKernel(0.2) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, input.shape()));
    if (out->num_elements() == 0) return {};
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      const Eigen::LLT<DenseMatrix<T>> llt(matrix_at<T>(input, i));
      DenseMatrix<T> lower = llt.matrixL();
      if (llt.info() != Eigen::Success)
        lower.template triangularView<Eigen::Lower>().setConstant(
            std::numeric_limits<RealScalar<MatrixScalar<T>>>::quiet_NaN());
      set_matrix<T>(*out, i, lower);
      return static_cast<const char*>(nullptr);
    });
  }
};

// With P = L^T grad, whose upper triangle is cleared and whose diagonal is
// halved, the symmetric part of L^-T P L^-1.
template <class T>
class CholeskyGradKernel : public CubicKernel {
 public:
  explicit CholeskyGradKernel(const KernelInfo&) : CubicKernel(1) {}

  Status compute(KernelContext& context) const override {
    const Tensor& factors = context.input(0);
    const Tensor& grads = context.input(1);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    if (!(factors.shape() == grads.shape()))
      return context.fail("{} and the gradients {} differ in shape",
                          factors.describe(), grads.describe());
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, factors.shape()));
    if (out->num_elements() == 0) return {};
    return for_each_matrix(
        context, count, matrix_cost(factors), [&](int64_t i) {
          const auto factor = matrix_at<T>(factors, i);
          const auto l = factor.template triangularView<Eigen::Lower>();
          const auto grad = matrix_at<T>(grads, i);
          DenseMatrix<T> p = grad.template triangularView<Eigen::Lower>();
          p = (l.transpose() * p).eval();
          p.diagonal() *= MatrixScalar<T>(0.5);
          p.template triangularView<Eigen::StrictlyUpper>().setZero();
          l.transpose().solveInPlace(p);
          // P L^-1 is the transpose of the solution of L^T X = P^T.
          DenseMatrix<T> x = p.transpose();
          l.transpose().solveInPlace(x);
          p = x.transpose();
          set_matrix<T>(*out, i,
                        DenseMatrix<T>((p + x) * MatrixScalar<T>(0.5)));
          return static_cast<const char*>(nullptr);
        });
  }
};

}  // namespace

void register_linalg_cholesky_kernels(KernelRegistry& registry) {
  for_each<float, double, Half, Complex64, Complex128>(
      [&]<class T>(TypeTag<T>) {
        registry.add<CholeskyKernel<T>>("Cholesky", {{"T", {kDataTypeOf<T>}}});
      });
  for_each<float, double, Half>([&]<class T>(TypeTag<T>) {
    registry.add<CholeskyGradKernel<T>>("CholeskyGrad",
                                        {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
