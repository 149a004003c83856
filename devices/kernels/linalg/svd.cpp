// Svd.
#include <Eigen/SVD>
#include <limits>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/batch.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

namespace {

// Computed in double for all types: the solvers take long to compile. Numbers
// that are not finite give NaN, as in TensorFlow.
template <class T>
class SvdKernel : public CubicKernel {
 public:
  explicit SvdKernel(const KernelInfo& info)
      : CubicKernel(40),
        has_vectors_(attr_of<bool>(info, "compute_uv")),
        full_(attr_of<bool>(info, "full_matrices")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, false));
    const int64_t rows = input.dim(input.rank() - 2);
    const int64_t columns = input.dim(input.rank() - 1);
    const int64_t least = std::min(rows, columns);
    TAGFLOW_ASSIGN(const Shape s_shape, batch_shape(input, {least}));
    Shape u_shape{0}, v_shape{0};
    if (has_vectors_) {
      TAGFLOW_ASSIGN(u_shape, batch_shape(input, {rows, full_ ? rows : least}));
      TAGFLOW_ASSIGN(v_shape,
                     batch_shape(input, {columns, full_ ? columns : least}));
    }
    Results to;
    TAGFLOW_ASSIGN(to.s, context.allocate_output(0, s_shape));
    TAGFLOW_ASSIGN(to.u, context.allocate_output(1, u_shape));
    TAGFLOW_ASSIGN(to.v, context.allocate_output(2, v_shape));
    // The number of empty matrices may overflow.
    if (to.s->num_elements() + to.u->num_elements() + to.v->num_elements() == 0)
      return {};
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      decompose(matrix_at<T>(input, i).template cast<Scalar>(), i, to);
      return static_cast<const char*>(nullptr);
    });
  }

 private:
  using Scalar = std::conditional_t<kComplexType<T>, Complex128, double>;
  using Matrix = DenseMatrix<Scalar>;

  struct Results {
    Tensor *s, *u, *v;
  };

  void decompose(const Matrix& matrix, int64_t i, const Results& to) const {
    const int64_t least = std::min(matrix.rows(), matrix.cols());
    const int64_t in_u = full_ ? matrix.rows() : least;
    const int64_t in_v = full_ ? matrix.cols() : least;
    Matrix s = Matrix::Zero(least, 1);
    Matrix u = Matrix::Identity(matrix.rows(), in_u);
    Matrix v = Matrix::Identity(matrix.cols(), in_v);
    if (!matrix.allFinite()) {
      const Scalar nan(std::numeric_limits<double>::quiet_NaN());
      s.setConstant(nan);
      u.setConstant(nan);
      v.setConstant(nan);
    } else if (least > 0) {
      unsigned options = 0;
      if (has_vectors_)
        options = full_ ? Eigen::ComputeFullU | Eigen::ComputeFullV
                        : Eigen::ComputeThinU | Eigen::ComputeThinV;
      const Eigen::JacobiSVD<Matrix> svd(matrix, options);
      s = svd.singularValues().template cast<Scalar>();
      if (has_vectors_) u = svd.matrixU();
      if (has_vectors_) v = svd.matrixV();
    }
    set_matrix<T>(*to.s, i, s);
    if (!has_vectors_) return;
    set_matrix<T>(*to.u, i, u);
    set_matrix<T>(*to.v, i, v);
  }

  bool has_vectors_, full_;
};

}  // namespace

void register_linalg_svd_kernels(KernelRegistry& registry) {
  for_each<float, double, Half, Complex64, Complex128>(
      [&]<class T>(TypeTag<T>) {
        registry.add<SvdKernel<T>>("Svd", {{"T", {kDataTypeOf<T>}}});
      });
}

}  // namespace tagflow::devices
