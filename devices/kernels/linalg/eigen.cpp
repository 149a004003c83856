// Qr and SelfAdjointEigV2.
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/batch.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

namespace {

template <class T>
class QrKernel : public CubicKernel {
 public:
  explicit QrKernel(const KernelInfo& info)
      : CubicKernel(1.5), full_(attr_of<bool>(info, "full_matrices")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, false));
    const int64_t rows = input.dim(input.rank() - 2);
    const int64_t columns = input.dim(input.rank() - 1);
    const int64_t kept = full_ ? rows : std::min(rows, columns);
    TAGFLOW_ASSIGN(const Shape q_shape, batch_shape(input, {rows, kept}));
    TAGFLOW_ASSIGN(const Shape r_shape, batch_shape(input, {kept, columns}));
    TAGFLOW_ASSIGN(Tensor * q, context.allocate_output(0, q_shape));
    TAGFLOW_ASSIGN(Tensor * r, context.allocate_output(1, r_shape));
    if (q->num_elements() == 0) return {};  // then r is empty too
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      DenseMatrix<T> of_q = DenseMatrix<T>::Identity(rows, kept);
      if (columns > 0) {
        const Eigen::HouseholderQR<DenseMatrix<T>> qr(matrix_at<T>(input, i));
        of_q = qr.householderQ() * of_q;
        DenseMatrix<T> of_r =
            qr.matrixQR().topRows(kept).template triangularView<Eigen::Upper>();
        set_matrix<T>(*r, i, of_r);
      }
      set_matrix<T>(*q, i, of_q);
      return static_cast<const char*>(nullptr);
    });
  }

 private:
  bool full_;
};

// Reads the lower triangle; eigenvalues ascend.
template <class T>
class EigenKernel : public CubicKernel {
 public:
  explicit EigenKernel(const KernelInfo& info)
      : CubicKernel(10), has_vectors_(attr_of<bool>(info, "compute_v")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    const int64_t side = input.dim(input.rank() - 1);
    TAGFLOW_ASSIGN(const Shape row, batch_shape(input, {side}));
    TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(0, row));
    TAGFLOW_ASSIGN(
        Tensor * vectors,
        context.allocate_output(1, has_vectors_ ? input.shape() : Shape{0}));
    if (values->num_elements() == 0) return {};
    const int options =
        has_vectors_ ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly;
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      const Eigen::SelfAdjointEigenSolver<DenseMatrix<T>> solver(
          matrix_at<T>(input, i), options);
      if (solver.info() != Eigen::Success)
        return "has no self-adjoint eigendecomposition";
      set_elements<T>(
          *values, i * side,
          solver.eigenvalues().template cast<MatrixScalar<T>>().eval());
      if (has_vectors_) set_matrix<T>(*vectors, i, solver.eigenvectors());
      return static_cast<const char*>(nullptr);
    });
  }

 private:
  bool has_vectors_;
};

}  // namespace

void register_linalg_eigen_kernels(KernelRegistry& registry) {
  for_each<float, double, Half, Complex64, Complex128>([&]<class T>(
                                                           TypeTag<T>) {
    registry.add<QrKernel<T>>("Qr", {{"T", {kDataTypeOf<T>}}});
    registry.add<EigenKernel<T>>("SelfAdjointEigV2", {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
