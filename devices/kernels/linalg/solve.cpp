// MatrixInverse, MatrixSolve, MatrixTriangularSolve.
#include <Eigen/LU>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/linalg/batch.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

namespace {

constexpr const char* kSingular = "is not invertible";

// A decomposition of the matrix, or of its adjoint; nothing if it is singular.
template <class T>
std::optional<Eigen::PartialPivLU<DenseMatrix<T>>> decompose(
    DenseMatrix<T> matrix, bool adjoint) {
  if (adjoint) matrix.adjointInPlace();
  Eigen::PartialPivLU<DenseMatrix<T>> lu(matrix);
  // False for NaN, too.
  if (!(lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0)) return {};
  return lu;
}

template <class T>
class InverseKernel : public CubicKernel {
 public:
  explicit InverseKernel(const KernelInfo& info)
      : CubicKernel(1), adjoint_(attr_of<bool>(info, "adjoint")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, input.shape()));
    if (out->num_elements() == 0) return {};
    return for_each_matrix(context, count, matrix_cost(input), [&](int64_t i) {
      const auto lu = decompose<T>(matrix_at<T>(input, i), adjoint_);
      if (!lu) return kSingular;
      set_matrix<T>(*out, i, DenseMatrix<T>(lu->inverse()));
      return static_cast<const char*>(nullptr);
    });
  }

 private:
  bool adjoint_;
};

template <class T>
class SolveKernel : public CubicKernel {
 public:
  explicit SolveKernel(const KernelInfo& info)
      : CubicKernel(0.5), adjoint_(attr_of<bool>(info, "adjoint")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& matrix = context.input(0);
    const Tensor& rhs = context.input(1);
    TAGFLOW_ASSIGN(const int64_t count, count_matrices(context, 0, true));
    TAGFLOW_RETURN_IF_ERROR(count_matrices(context, 1, false).status());
    bool fits = matrix.rank() == rhs.rank();
    for (int d = 0; fits && d < matrix.rank() - 1; ++d)
      fits = matrix.dim(d) == rhs.dim(d);
    if (!fits)
      return context.fail("{} and the right-hand sides {} do not fit",
                          matrix.describe(), rhs.describe());
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, rhs.shape()));
    if (out->num_elements() == 0) return {};
    return for_each_matrix(context, count, matrix_cost(matrix), [&](int64_t i) {
      const auto lu = decompose<T>(matrix_at<T>(matrix, i), adjoint_);
      if (!lu) return kSingular;
      set_matrix<T>(*out, i, DenseMatrix<T>(lu->solve(matrix_at<T>(rhs, i))));
      return static_cast<const char*>(nullptr);
    });
  }

 private:
  bool adjoint_;
};

// The batches of both are broadcast. A zero on the diagonal gives infinities
// and NaN.
template <class T>
class TriangularSolveKernel : public CubicKernel {
 public:
  explicit TriangularSolveKernel(const KernelInfo& info)
      : CubicKernel(0.3),
        lower_(attr_of<bool>(info, "lower")),
        adjoint_(attr_of<bool>(info, "adjoint")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& matrix = context.input(0);
    const Tensor& rhs = context.input(1);
    TAGFLOW_RETURN_IF_ERROR(count_matrices(context, 0, true).status());
    TAGFLOW_RETURN_IF_ERROR(count_matrices(context, 1, false).status());
    const int64_t side = rhs.dim(rhs.rank() - 2);
    if (matrix.dim(matrix.rank() - 1) != side)
      return context.fail("{} and the right-hand sides {} do not fit",
                          matrix.describe(), rhs.describe());
    TAGFLOW_ASSIGN(const Batches batches, broadcast(context));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, batches.shape));
    if (out->num_elements() == 0) return {};
    const int64_t columns = rhs.dim(rhs.rank() - 1);
    return for_each_matrix(
        context, out->num_elements() / (side * columns), matrix_cost(matrix),
        [&](int64_t i) {
          const auto a = matrix_at<T>(matrix, batches.number(i, 0));
          DenseMatrix<T> x = matrix_at<T>(rhs, batches.number(i, 1));
          solve(a, x);
          set_matrix<T>(*out, i, x);
          return static_cast<const char*>(nullptr);
        });
  }

 private:
  struct Batches {
    Shape shape;           // of the output
    Shape::Dims steps[2];  // of each operand, in matrices

    int64_t number(int64_t i, int operand) const {
      int64_t number = 0;
      for (size_t d = steps[operand].size(); d-- > 0;) {
        number += i % shape.dim(int(d)) * steps[operand][d];
        i /= shape.dim(int(d));
      }
      return number;
    }
  };

  static Result<Batches> broadcast(const KernelContext& context) {
    const Tensor* operands[] = {&context.input(0), &context.input(1)};
    const int rank = std::max(operands[0]->rank(), operands[1]->rank());
    const auto dim = [&](int operand, int d) {
      const int at = d - (rank - operands[operand]->rank());
      return at < 0 ? 1 : operands[operand]->dim(at);
    };
    Batches batches;
    Shape::Dims dims;
    for (int d = 0; d < rank - 2; ++d) {
      if (dim(0, d) != dim(1, d) && dim(0, d) != 1 && dim(1, d) != 1)
        return context.fail("the batches of {} and {} do not fit",
                            operands[0]->describe(), operands[1]->describe());
      dims.push_back(dim(0, d) == 1 ? dim(1, d) : dim(0, d));
    }
    for (int operand : {0, 1}) {
      batches.steps[operand].assign(dims.size(), 0);
      uint64_t step = 1;
      for (int d = rank - 2; d-- > 0;) {
        if (dim(operand, d) != 1)
          batches.steps[operand][size_t(d)] = int64_t(step);
        step *= uint64_t(dim(operand, d));
      }
    }
    dims.push_back(dim(1, rank - 2));
    dims.push_back(dim(1, rank - 1));
    TAGFLOW_ASSIGN(batches.shape, Shape::make({dims.data(), dims.size()}));
    return batches;
  }

  void solve(const DenseMatrix<T>& a, DenseMatrix<T>& x) const {
    if (lower_ && adjoint_) {
      a.template triangularView<Eigen::Lower>().adjoint().solveInPlace(x);
    } else if (lower_) {
      a.template triangularView<Eigen::Lower>().solveInPlace(x);
    } else if (adjoint_) {
      a.template triangularView<Eigen::Upper>().adjoint().solveInPlace(x);
    } else {
      a.template triangularView<Eigen::Upper>().solveInPlace(x);
    }
  }

  bool lower_, adjoint_;
};

}  // namespace

void register_linalg_solve_kernels(KernelRegistry& registry) {
  const auto add = [&]<class T>(TypeTag<T>) {
    const TypeLimits types = {{"T", {kDataTypeOf<T>}}};
    registry.add<InverseKernel<T>>("MatrixInverse", types);
    registry.add<SolveKernel<T>>("MatrixSolve", types);
    registry.add<TriangularSolveKernel<T>>("MatrixTriangularSolve", types);
  };
  for_each<float, double, Half, Complex64, Complex128>(add);
  registry.add<TriangularSolveKernel<BFloat16>>("MatrixTriangularSolve",
                                                {{"T", {DataType::kBFloat16}}});
}

}  // namespace tagflow::devices
