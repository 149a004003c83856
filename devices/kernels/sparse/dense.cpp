// SparseToDense, SparseTensorDenseAdd, SparseDenseCwiseAdd, -Mul and -Div.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/segment/ids.h"
#include "devices/kernels/sparse/args.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class ToDenseKernel : public SparseKernel {
 public:
  explicit ToDenseKernel(const KernelInfo& info)
      : validates_(attr_of<bool>(info, "validate_indices")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(2);
    TAGFLOW_ASSIGN(const Tensor indices, as_int64(context, context.input(0)));
    if (indices.rank() > 2)
      return context.fail("sparse_indices must be of rank 2 at most, got {}",
                          indices.describe());
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "output_shape", dims));
    const int64_t columns = indices.rank() == 2 ? indices.dim(1) : 1;
    SparseIndices sparse;
    sparse.coordinates = indices.data<int64_t>();
    sparse.count = indices.rank() == 0 ? 1 : indices.dim(0);
    if (int64_t(dims.size()) != columns)
      return context.fail("output_shape has {} elements, not {}", dims.size(),
                          columns);
    TAGFLOW_ASSIGN(sparse.shape, Shape::make({dims.data(), dims.size()}));
    if (!values.is_scalar() &&
        (values.rank() != 1 || values.dim(0) != sparse.count))
      return context.fail(
          "sparse_values must be a scalar or a vector of {} elements, got {}",
          sparse.count, values.describe());
    if (!context.input(3).is_scalar())
      return context.fail("default_value must be a scalar, got {}",
                          context.input(3).describe());
    TAGFLOW_RETURN_IF_ERROR(validates_
                                ? check_inside_and_sorted(context, sparse)
                                : check_inside(context, sparse));
    TAGFLOW_ASSIGN(Tensor * dense, context.allocate_output(0, sparse.shape));
    fill_elements(context, context.input(3), *dense);
    const auto strides = row_major_strides(sparse.shape.dims());
    visit_movable(values.dtype(), [&]<class T>(TypeTag<T>) {
      const T* from = static_cast<const T*>(values.raw());
      T* to = static_cast<T*>(dense->mutable_raw());
      const ElementWriter<T> writer(*dense);
      for (int64_t i = 0; i < sparse.count; ++i) {
        context.check_cancelled();
        writer.assign(to[offset_of(sparse.at(i), strides)],
                      from[values.is_scalar() ? 0 : i]);
      }
    });
    return {};
  }

  double cost(const KernelContext& context) const override {
    double elements = 1;
    const Tensor& shape = context.input(1);
    for (int64_t i = 0; i < shape.num_elements(); ++i)
      elements *= double(graph::index_at(shape, i));
    return SparseKernel::cost(context) + 0.5 * std::max(elements, 0.0);
  }

 private:
  bool validates_;
};

// The sum of a dense tensor and a sparse one of the same shape.
template <class T>
class AddToDenseKernel : public SparseKernel {
 public:
  explicit AddToDenseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& indices = context.input(0);
    const Tensor& values = context.input(1);
    const Tensor& dense = context.input(3);
    TAGFLOW_ASSIGN(const Tensor wide, as_int64(context, indices));
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 2, "a_shape", dims));
    if (indices.rank() != 2 || values.rank() != 1 ||
        indices.dim(0) != values.dim(0) ||
        indices.dim(1) != int64_t(dims.size()))
      return context.fail(
          "indices {}, values {} and a shape of {} elements do not fit",
          indices.describe(), values.describe(), dims.size());
    SparseIndices sparse{wide.data<int64_t>(), indices.dim(0), {}};
    TAGFLOW_ASSIGN(sparse.shape, Shape::make({dims.data(), dims.size()}));
    if (!(sparse.shape == dense.shape()))
      return context.fail("a sparse tensor of shape {} cannot be added to {}",
                          sparse.shape.to_string(), dense.describe());
    TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(3, 0, sparse.shape));
    T* to = out->mutable_data<T>();
    if (to != dense.data<T>())
      std::copy_n(dense.data<T>(), dense.num_elements(), to);
    const auto strides = row_major_strides(sparse.shape.dims());
    for (int64_t i = 0; i < sparse.count; ++i) {
      context.check_cancelled();
      T& element = to[offset_of(sparse.at(i), strides)];
      element = SumOp<T>::finish(
          SumOp<T>::combine(SumOp<T>::load(element),
                            SumOp<T>::load(values.data<T>()[i])),
          2);
    }
    return {};
  }
};

enum class Combine : uint8_t { kAdd, kMultiply, kDivide };

// Combines the elements of a sparse tensor with those of a dense one, which is
// broadcast to its shape.
template <class T, Combine kCombine>
class CombineDenseKernel : public SparseKernel {
 public:
  explicit CombineDenseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
    const Tensor& dense = context.input(3);
    const int missing = sparse.shape.rank() - dense.rank();
    auto strides = row_major_strides(dense.shape().dims());
    bool fits = missing >= 0;
    for (int d = 0; fits && d < dense.rank(); ++d) {
      if (dense.dim(d) == sparse.shape.dim(missing + d)) continue;
      fits = dense.dim(d) == 1;
      strides[size_t(d)] = 0;
    }
    if (!fits)
      return context.fail("{} cannot be broadcast to the sparse shape {}",
                          dense.describe(), sparse.shape.to_string());
    TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
    strides.insert(strides.begin(), size_t(missing), 0);
    const T* values = context.input(1).data<T>();
    TAGFLOW_ASSIGN(Tensor * out,
                   context.allocate_output(0, Shape{sparse.count}));
    for (int64_t i = 0; i < sparse.count; ++i) {
      context.check_cancelled();
      const T other = dense.data<T>()[offset_of(sparse.at(i), strides)];
      if constexpr (std::is_integral_v<T> && kCombine == Combine::kDivide)
        if (other == T(0))
          return context.fail("division by zero at indices[{}] = {}", i,
                              coordinates_text(sparse.at(i)));
      out->mutable_data<T>()[i] = combined(values[i], other);
    }
    return {};
  }

 private:
  static T combined(T a, T b) {
    using Acc = Accumulator<T>;
    if constexpr (kCombine == Combine::kAdd) return T(Acc(a) + Acc(b));
    if constexpr (kCombine == Combine::kMultiply)
      return T(multiplied(Acc(a), Acc(b)));
    if constexpr (kCombine == Combine::kDivide) {
      if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
        // The smallest number over -1 wraps around.
        return b == T(-1) ? T(0 - Acc(a)) : T(a / b);
      } else if constexpr (kIs16BitFloat<T>) {
        return T(Acc(a) / Acc(b));
      } else {
        return T(a / b);
      }
    }
  }
};

}  // namespace

void register_sparse_dense_kernels(KernelRegistry& registry) {
  registry.add<ToDenseKernel>("SparseToDense");
  for_each_numeric([&]<class T>(TypeTag<T>) {
    const TypeLimits types = {{"T", {kDataTypeOf<T>}}};
    registry.add<AddToDenseKernel<T>>("SparseTensorDenseAdd", types);
    registry.add<CombineDenseKernel<T, Combine::kAdd>>("SparseDenseCwiseAdd",
                                                       types);
    registry.add<CombineDenseKernel<T, Combine::kMultiply>>(
        "SparseDenseCwiseMul", types);
    registry.add<CombineDenseKernel<T, Combine::kDivide>>("SparseDenseCwiseDiv",
                                                          types);
  });
}

}  // namespace tagflow::devices
