// SparseReorder, SparseReshape, SparseConcat: move elements.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

// Sets outputs 0 and 1 to the elements `order` of a sparse tensor.
Status set_elements(KernelContext& context, const SparseIndices& sparse,
                    const Tensor& values, const std::vector<int64_t>& order) {
  TAGFLOW_ASSIGN(
      Tensor * indices,
      context.allocate_output(0, Shape{sparse.count, sparse.shape.rank()}));
  auto* to = indices->mutable_data<int64_t>();
  for (int64_t i : order) {
    context.check_cancelled();
    to = std::ranges::copy(sparse.at(i), to).out;
  }
  TAGFLOW_ASSIGN(Tensor * moved,
                 context.allocate_output(1, Shape{sparse.count}));
  visit_movable(values.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = static_cast<T*>(moved->mutable_raw());
    for (int64_t i : order) {
      context.check_cancelled();
      *out++ = static_cast<const T*>(values.raw())[i];
    }
  });
  return {};
}

class ReorderKernel : public SparseKernel {
 public:
  explicit ReorderKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
    const auto order = sorted_order(context, sparse);
    if (std::ranges::is_sorted(order)) {
      context.set_output(0, context.input(0));
      context.set_output(1, context.input(1));
      return {};
    }
    return set_elements(context, sparse, context.input(1), order);
  }
};

class ReshapeSparseKernel : public SparseKernel {
 public:
  explicit ReshapeSparseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& indices = context.input(0);
    if (indices.rank() != 2)
      return context.fail("indices must be a matrix, got {}",
                          indices.describe());
    Shape::Dims dims, wanted;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "input_shape", dims));
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 2, "new_shape", wanted));
    if (int64_t(dims.size()) != indices.dim(1))
      return context.fail("indices of {} columns do not fit a shape of rank {}",
                          indices.dim(1), dims.size());
    SparseIndices sparse;
    sparse.coordinates = indices.data<int64_t>();
    sparse.count = indices.dim(0);
    TAGFLOW_ASSIGN(sparse.shape, Shape::make({dims.data(), dims.size()}));
    TAGFLOW_ASSIGN(const Shape shape,
                   new_shape(context, sparse.shape, std::move(wanted)));
    TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
    TAGFLOW_RETURN_IF_ERROR(set_shape_output(context, 1, shape));
    if (shape == sparse.shape) {
      context.set_output(0, indices);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(
                                        0, Shape{sparse.count, shape.rank()}));
    const auto from = row_major_strides(sparse.shape.dims());
    const auto to = row_major_strides(shape.dims());
    auto* at = output->mutable_data<int64_t>();
    for (int64_t i = 0; i < sparse.count; ++i) {
      context.check_cancelled();
      int64_t offset = offset_of(sparse.at(i), from);
      for (int64_t stride : to) {
        *at++ = offset / stride;
        offset %= stride;
      }
    }
    return {};
  }

 private:
  // The shape, with a -1 replaced by the size.
  static Result<Shape> new_shape(const KernelContext& context,
                                 const Shape& shape, Shape::Dims dims) {
    int64_t product = 1;
    int unknown = -1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < -1)
        return context.fail("size {} of new_shape is {}", i, dims[i]);
      if (dims[i] != -1) {
        const auto next = checked_multiply(product, dims[i]);
        if (!next)
          return context.fail("new_shape has too many elements: {}",
                              coordinates_text(dims));
        product = *next;
        continue;
      }
      if (unknown >= 0)
        return context.fail("sizes {} and {} of new_shape are both unknown",
                            unknown, i);
      unknown = int(i);
    }
    const int64_t count = shape.num_elements();
    if (unknown >= 0) {
      if (product == 0)
        return context.fail(
            "the unknown size of {} cannot be inferred from the others",
            coordinates_text(dims));
      dims[size_t(unknown)] = count / product;
      product *= count / product;
    }
    if (product != count)
      return context.fail("{} elements cannot be of shape {}, they are of {}",
                          count, coordinates_text(dims), shape.to_string());
    return Shape::make({dims.data(), dims.size()});
  }
};

class ConcatSparseKernel : public SparseKernel {
 public:
  explicit ConcatSparseKernel(const KernelInfo& info)
      : axis_(attr_of<int64_t>(info, "concat_dim")) {}

  Status compute(KernelContext& context) const override {
    const int parts = context.num_inputs() / 3;
    SparseIndices all;
    int axis = 0;
    int64_t length = 0;
    for (int n = 0; n < parts; ++n) {
      TAGFLOW_ASSIGN(const SparseIndices part,
                     sparse_input(context, {n, parts + n, 2 * parts + n}));
      if (n == 0) {
        TAGFLOW_ASSIGN(axis, checked_axis(context, axis_, part.shape.rank(),
                                          "concat_dim"));
        all.shape = part.shape;
      }
      Shape same = part.shape;
      if (same.rank() == all.shape.rank())
        same.set_dim(axis, all.shape.dim(axis));
      if (!(same == all.shape))
        return context.fail("shapes {} and {} cannot be joined along axis {}",
                            all.shape.to_string(), part.shape.to_string(),
                            axis);
      TAGFLOW_RETURN_IF_ERROR(check_inside(context, part));
      all.count += part.count;
      if (__builtin_add_overflow(length, part.shape.dim(axis), &length))
        return context.fail("the sizes along axis {} overflow", axis);
    }
    all.shape.set_dim(axis, length);
    TAGFLOW_ASSIGN(all.shape, Shape::make(all.shape.dims()));
    return join(context, all, axis);
  }

 private:
  static Status join(KernelContext& context, SparseIndices all, int axis) {
    const int parts = context.num_inputs() / 3;
    std::vector<int64_t> coordinates;
    coordinates.reserve(size_t(all.count) * size_t(all.shape.rank()));
    TAGFLOW_ASSIGN(
        Tensor values,
        context.allocate_temp(context.input(parts).dtype(), Shape{all.count}));
    int64_t start = 0, filled = 0;
    for (int n = 0; n < parts; ++n) {
      const Tensor& indices = context.input(n);
      for (int64_t i = 0; i < indices.num_elements(); ++i) {
        context.check_cancelled();
        coordinates.push_back(indices.data<int64_t>()[i] +
                              (i % all.shape.rank() == axis ? start : 0));
      }
      copy_elements(context.input(parts + n), 0, values, filled,
                    indices.dim(0));
      filled += indices.dim(0);
      start += context.input(2 * parts + n).data<int64_t>()[axis];
    }
    all.coordinates = coordinates.data();
    TAGFLOW_RETURN_IF_ERROR(
        set_elements(context, all, values, sorted_order(context, all)));
    return set_shape_output(context, 2, all.shape);
  }

  int64_t axis_;
};

}  // namespace

void register_sparse_layout_kernels(KernelRegistry& registry) {
  registry.add<ReorderKernel>("SparseReorder");
  registry.add<ReshapeSparseKernel>("SparseReshape");
  registry.add<ConcatSparseKernel>("SparseConcat");
}

}  // namespace tagflow::devices
