// SparseTensorDenseMatMul: a sparse matrix by a dense one.
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/segment/ids.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

template <class T>
T conjugate_if(bool conjugates, const T& value) {
  if constexpr (kComplexType<T>) return conjugates ? std::conj(value) : value;
  return value;
}

template <class T>
class SparseProductKernel : public Kernel {
  using Acc = Accumulator<T>;

 public:
  explicit SparseProductKernel(const KernelInfo& info)
      : adjoint_a_(attr_of<bool>(info, "adjoint_a")),
        adjoint_b_(attr_of<bool>(info, "adjoint_b")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(1);
    const Tensor& b = context.input(3);
    TAGFLOW_ASSIGN(const Tensor indices, as_int64(context, context.input(0)));
    Shape::Dims a;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 2, "a_shape", a));
    if (a.size() != 2)
      return context.fail("a_shape has {} elements, not 2", a.size());
    TAGFLOW_RETURN_IF_ERROR(Shape::make({a.data(), a.size()}).status());
    if (b.rank() != 2)
      return context.fail("b must be a matrix, got {}", b.describe());
    if (indices.rank() != 2 || indices.dim(1) != 2 || values.rank() != 1 ||
        indices.dim(0) != values.dim(0))
      return context.fail("indices {} and values {} are not a sparse matrix",
                          indices.describe(), values.describe());
    const int64_t rows = a[adjoint_a_ ? 1 : 0], inner = a[adjoint_a_ ? 0 : 1];
    if (b.dim(adjoint_b_ ? 1 : 0) != inner)
      return context.fail("the inner dimensions of {}{} and {}{} differ",
                          coordinates_text(a), adjoint_a_ ? " (adjoint)" : "",
                          b.describe(), adjoint_b_ ? " (adjoint)" : "");
    for (int64_t i = 0; i < indices.num_elements(); ++i) {
      const int64_t at = indices.data<int64_t>()[i];
      if (at < 0 || at >= a[size_t(i % 2)])
        return context.fail("a_indices[{},{}] = {} is outside of [0, {})",
                            i / 2, i % 2, at, a[size_t(i % 2)]);
    }
    const int64_t columns = b.dim(adjoint_b_ ? 0 : 1);
    TAGFLOW_ASSIGN(const Shape shape,
                   Shape::make(std::initializer_list<int64_t>{rows, columns}));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if constexpr (std::is_same_v<T, Acc>) {
      multiply(context, indices, values, out->mutable_data<Acc>());
    } else {
      TAGFLOW_ASSIGN(Tensor wide,
                     context.allocate_temp(kDataTypeOf<Acc>, shape));
      Acc* sums = wide.template mutable_data<Acc>();
      multiply(context, indices, values, sums);
      for (int64_t i = 0; i < out->num_elements(); ++i)
        out->mutable_data<T>()[i] = static_cast<T>(sums[i]);
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    const Tensor& b = context.input(3);
    if (b.rank() != 2) return 0;
    return 200 +
           double(context.input(1).num_elements()) *
               (3 + 0.4 * double(b.dim(adjoint_b_ ? 0 : 1))) +
           0.4 * double(b.num_elements());
  }

 private:
  // Parts of the columns are independent of each other.
  void multiply(KernelContext& context, const Tensor& indices,
                const Tensor& values, Acc* sums) const {
    const Tensor& b = context.input(3);
    const int64_t width = b.dim(1);
    const int64_t columns = b.dim(adjoint_b_ ? 0 : 1);
    const int64_t rows = context.output(0).dim(0);
    context.for_blocks(context.output(0).num_elements(), 0.5,
                       [&](int64_t begin, int64_t end) {
                         std::fill(sums + begin, sums + end, Acc(0));
                       });
    if (rows == 0) return;
    const auto count = double(values.dim(0));
    constexpr int64_t kLook = 1 << 10;
    context.parallel_for(
        columns, 0.4 * count,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = 0; i < values.dim(0); ++i) {
            if (i % kLook == 0) context.check_cancelled();
            const int64_t* at = indices.data<int64_t>() + 2 * i;
            const int64_t row = at[adjoint_a_ ? 1 : 0];
            const int64_t k = at[adjoint_a_ ? 0 : 1];
            const Acc value =
                conjugate_if(adjoint_a_, static_cast<Acc>(values.data<T>()[i]));
            const T* from = b.data<T>() + (adjoint_b_ ? k : k * width);
            Acc* to = sums + row * columns;
            if (adjoint_b_) {
              for (int64_t j = begin; j < end; ++j)
                to[j] += multiplied(
                    value,
                    conjugate_if(true, static_cast<Acc>(from[j * width])));
            } else {
              for (int64_t j = begin; j < end; ++j)
                to[j] += multiplied(value, static_cast<Acc>(from[j]));
            }
          }
        },
        3 * count);
  }

  bool adjoint_a_, adjoint_b_;
};

}  // namespace

void register_sparse_product_kernels(KernelRegistry& registry) {
  for_each<float, double, int32_t, int64_t, Half, BFloat16, Complex64,
           Complex128>([&]<class T>(TypeTag<T>) {
    registry.add<SparseProductKernel<T>>("SparseTensorDenseMatMul",
                                         {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
