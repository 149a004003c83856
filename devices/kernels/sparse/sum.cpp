// SparseAdd and its gradient, SparseSparseMaximum and -Minimum: the elements of
// two sparse tensors, merged.
#include <algorithm>
#include <cmath>

#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

struct Operands {
  SparseIndices a, b;
};

Result<Operands> operands_of(const KernelContext& context) {
  Operands operands;
  TAGFLOW_ASSIGN(operands.a, sparse_input(context, {0, 1, 2}));
  TAGFLOW_ASSIGN(operands.b, sparse_input(context, {3, 4, 5}));
  if (!(operands.a.shape == operands.b.shape))
    return context.fail("shapes {} and {} differ", operands.a.shape.to_string(),
                        operands.b.shape.to_string());
  return operands;
}

// Iterates over the elements of both in the order of their positions; take(i,
// j) gets their numbers, -1 if one tensor has no element.
template <class Take>
void merge(const KernelContext& context, const SparseIndices& a,
           const SparseIndices& b, Take take) {
  int64_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    context.check_cancelled();
    const bool from_a = i < a.count;
    const bool from_b = j < b.count;
    if (from_a && (!from_b || is_before(a.at(i), b.at(j)))) {
      take(i++, -1);
    } else if (!from_a || is_before(b.at(j), a.at(i))) {
      take(-1, j++);
    } else {
      take(i++, j++);
    }
  }
}

// The result of a merge: the elements, and their values.
template <class T>
struct Merged {
  std::vector<std::pair<int64_t, int64_t>> from;
  std::vector<T> values;
};

template <class T>
Status set_merged(KernelContext& context, const Operands& operands,
                  const Merged<T>& merged) {
  const auto count = int64_t(merged.from.size());
  TAGFLOW_ASSIGN(
      Tensor * indices,
      context.allocate_output(0, Shape{count, operands.a.shape.rank()}));
  TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(1, Shape{count}));
  auto* to = indices->mutable_data<int64_t>();
  for (const auto& [i, j] : merged.from) {
    context.check_cancelled();
    to =
        std::ranges::copy(i >= 0 ? operands.a.at(i) : operands.b.at(j), to).out;
  }
  std::ranges::copy(merged.values, values->mutable_data<T>());
  return {};
}

// The sum, without common elements whose sum is below the threshold.
template <class T, class Real>
class AddSparseKernel : public SparseKernel {
 public:
  explicit AddSparseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Operands operands, operands_of(context));
    if (!context.input(6).is_scalar())
      return context.fail("thresh must be a scalar, got {}",
                          context.input(6).describe());
    const Real threshold = context.input(6).scalar_value<Real>();
    const T* a = context.input(1).data<T>();
    const T* b = context.input(4).data<T>();
    Merged<T> merged;
    merge(context, operands.a, operands.b, [&](int64_t i, int64_t j) {
      const T sum = j < 0 ? a[i] : i < 0 ? b[j] : added(a[i], b[j]);
      if (i >= 0 && j >= 0 && !(threshold <= size_of(sum))) return;
      merged.from.emplace_back(i, j);
      merged.values.push_back(sum);
    });
    TAGFLOW_RETURN_IF_ERROR(set_merged(context, operands, merged));
    context.set_output(2, context.input(2));
    return {};
  }

 private:
  static T added(T a, T b) {
    return SumOp<T>::finish(
        SumOp<T>::combine(SumOp<T>::load(a), SumOp<T>::load(b)), 1);
  }
  static Real size_of(T value) {
    if constexpr (std::is_unsigned_v<T>) {
      return value;
    } else if constexpr (std::is_integral_v<T>) {
      // The smallest number has no absolute value: it stays, as in TensorFlow.
      return value < 0 ? T(0 - std::make_unsigned_t<T>(value)) : value;
    } else if constexpr (kIs16BitFloat<T>) {
      return Real(std::abs(float(value)));
    } else {
      return std::abs(value);
    }
  }
};

template <class T>
class AddSparseGradKernel : public SparseKernel {
 public:
  explicit AddSparseGradKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& grad = context.input(0);
    SparseIndices terms[3];
    for (int n = 0; n < 3; ++n) {
      const Tensor& indices = context.input(1 + n);
      if (indices.rank() != 2)
        return context.fail("input {}, indices, must be a matrix, got {}",
                            1 + n, indices.describe());
      terms[n].coordinates = indices.data<int64_t>();
      terms[n].count = indices.dim(0);
      // Only the rank matters.
      for (int64_t d = 0; d < std::min<int64_t>(indices.dim(1), kMaxRank); ++d)
        terms[n].shape.add_dim(0);
      if (indices.dim(1) != context.input(1).dim(1) ||
          indices.dim(1) > kMaxRank)
        return context.fail(
            "indices {} and {} differ in rank, or have too many"
            " columns",
            context.input(1).describe(), indices.describe());
    }
    if (grad.rank() != 1 || grad.dim(0) != terms[2].count)
      return context.fail("gradients {} are not a vector of {} elements",
                          grad.describe(), terms[2].count);
    for (int n = 0; n < 2; ++n) {
      TAGFLOW_ASSIGN(Tensor * out,
                     context.allocate_output(n, Shape{terms[n].count}));
      T* to = out->mutable_data<T>();
      std::fill_n(to, terms[n].count, T(0));
      merge(context, terms[n], terms[2], [&](int64_t i, int64_t j) {
        if (i >= 0 && j >= 0) to[i] = grad.data<T>()[j];
      });
    }
    return {};
  }
};

// A missing element counts as 0.
template <class Op>
class ExtremeSparseKernel : public SparseKernel {
  using T = typename Op::In;

 public:
  explicit ExtremeSparseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Operands operands, operands_of(context));
    const T* a = context.input(1).data<T>();
    const T* b = context.input(4).data<T>();
    Merged<T> merged;
    merge(context, operands.a, operands.b, [&](int64_t i, int64_t j) {
      const T x = i < 0 ? T(0) : a[i], y = j < 0 ? T(0) : b[j];
      merged.from.emplace_back(i, j);
      merged.values.push_back(
          Op::finish(Op::combine(Op::load(x), Op::load(y)), 1));
    });
    return set_merged(context, operands, merged);
  }
};

template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using type = T;
};

}  // namespace

void register_sparse_sum_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    using Real = typename RealPart<T>::type;
    registry.add<AddSparseKernel<T, Real>>(
        "SparseAdd", {{"T", {kDataTypeOf<T>}}, {"Treal", {kDataTypeOf<Real>}}});
    registry.add<AddSparseGradKernel<T>>("SparseAddGrad",
                                         {{"T", {kDataTypeOf<T>}}});
  });
  for_each_real([&]<class T>(TypeTag<T>) {
    registry.add<ExtremeSparseKernel<MaxOp<T>>>("SparseSparseMaximum",
                                                {{"T", {kDataTypeOf<T>}}});
    registry.add<ExtremeSparseKernel<MinOp<T>>>("SparseSparseMinimum",
                                                {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
