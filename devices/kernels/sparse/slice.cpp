// SparseSlice, SparseSplit, SparseSliceGrad: parts of a sparse tensor.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

// A box within a sparse tensor.
struct Box {
  Shape::Dims start;
  Shape shape;

  bool has(std::span<const int64_t> at) const {
    for (size_t d = 0; d < at.size(); ++d)
      if (at[d] < start[d] || at[d] - start[d] >= shape.dim(int(d)))
        return false;
    return true;
  }
};

// Sets the three outputs from `first` on, `stride` apart, to the elements in
// the box, in their original order.
Status set_box(KernelContext& context, const SparseIndices& sparse,
               const Tensor& values, const Box& box, int first, int stride) {
  std::vector<int64_t> inside;
  for (int64_t i = 0; i < sparse.count; ++i) {
    context.check_cancelled();
    if (box.has(sparse.at(i))) inside.push_back(i);
  }
  const auto count = int64_t(inside.size());
  TAGFLOW_ASSIGN(
      Tensor * indices,
      context.allocate_output(first, Shape{count, sparse.shape.rank()}));
  auto* to = indices->mutable_data<int64_t>();
  for (int64_t i : inside) {
    context.check_cancelled();
    for (size_t d = 0; d < box.start.size(); ++d)
      *to++ = sparse.at(i)[d] - box.start[d];
  }
  TAGFLOW_ASSIGN(Tensor * kept,
                 context.allocate_output(first + stride, Shape{count}));
  visit_movable(values.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = static_cast<T*>(kept->mutable_raw());
    for (int64_t i : inside) *out++ = static_cast<const T*>(values.raw())[i];
  });
  return set_shape_output(context, first + 2 * stride, box.shape);
}

class SliceSparseKernel : public SparseKernel {
 public:
  explicit SliceSparseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
    const int rank = sparse.shape.rank();
    Box box;
    Shape::Dims sizes;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 3, "start", box.start));
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 4, "size", sizes));
    if (int(box.start.size()) != rank || int(sizes.size()) != rank)
      return context.fail("start {} and size {} must have {} elements each",
                          coordinates_text(box.start), coordinates_text(sizes),
                          rank);
    for (int d = 0; d < rank; ++d) {
      const int64_t start = box.start[size_t(d)], size = sizes[size_t(d)];
      if (start < 0 || size < 0)
        return context.fail("start {} or size {} is negative",
                            coordinates_text(box.start),
                            coordinates_text(sizes));
      box.shape.add_dim(
          std::min(size, std::max<int64_t>(sparse.shape.dim(d) - start, 0)));
    }
    return set_box(context, sparse, context.input(1), box, 0, 1);
  }
};

// Parts of about equal size along an axis, the larger ones first.
class SplitSparseKernel : public SparseKernel {
 public:
  explicit SplitSparseKernel(const KernelInfo& info)
      : parts_(attr_of<int64_t>(info, "num_split")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const int64_t given, index_scalar(context, 0, "split_dim"));
    TAGFLOW_ASSIGN(const SparseIndices sparse,
                   sparse_input(context, {1, 2, 3}));
    TAGFLOW_ASSIGN(
        const int axis,
        checked_axis(context, given, sparse.shape.rank(), "split_dim"));
    const int64_t length = sparse.shape.dim(axis);
    if (parts_ > length)
      return context.fail("num_split is {}, more than the {} of dimension {}",
                          parts_, length, axis);
    TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
    Box box{Shape::Dims(size_t(sparse.shape.rank()), 0), sparse.shape};
    for (int64_t part = 0; part < parts_; ++part) {
      const int64_t size = length / parts_ + (part < length % parts_);
      box.shape.set_dim(axis, size);
      TAGFLOW_RETURN_IF_ERROR(set_box(context, sparse, context.input(2), box,
                                      int(part), int(parts_)));
      box.start[size_t(axis)] += size;
    }
    return {};
  }

 private:
  int64_t parts_;
};

// Each element that the slice kept gets the gradient at its output position.
template <class T>
class SliceGradKernel : public SparseKernel {
 public:
  explicit SliceGradKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& grad = context.input(0);
    const Tensor& input = context.input(1);
    const Tensor& output = context.input(3);
    if (grad.rank() != 1 || input.rank() != 2 || output.rank() != 2)
      return context.fail(
          "gradients {} must be a vector, indices {} and {} matrices",
          grad.describe(), input.describe(), output.describe());
    Shape::Dims start;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 2, "input_start", start));
    const int64_t rank = input.dim(1), kept = output.dim(0);
    if (grad.dim(0) != kept || output.dim(1) != rank ||
        int64_t(start.size()) != rank)
      return context.fail(
          "gradients {}, indices {} and {} and a start of {} elements do not "
          "fit",
          grad.describe(), input.describe(), output.describe(), start.size());
    TAGFLOW_ASSIGN(Tensor * out,
                   context.allocate_output(0, Shape{input.dim(0)}));
    const int64_t* from = input.data<int64_t>();
    const int64_t* to = output.data<int64_t>();
    int64_t next = 0;
    for (int64_t i = 0; i < input.dim(0); ++i, from += rank) {
      context.check_cancelled();
      bool is_kept = next < kept;
      for (int64_t d = 0; is_kept && d < rank; ++d) {
        int64_t at = 0;
        is_kept = !__builtin_sub_overflow(from[d], start[size_t(d)], &at) &&
                  at == to[next * rank + d];
      }
      out->mutable_data<T>()[i] = is_kept ? grad.data<T>()[next] : T(0);
      next += is_kept;
    }
    if (next != kept)
      return context.fail("only {} of {} output_indices are from the input",
                          next, kept);
    return {};
  }
};

}  // namespace

void register_sparse_slice_kernels(KernelRegistry& registry) {
  registry.add<SliceSparseKernel>("SparseSlice");
  registry.add<SplitSparseKernel>("SparseSplit");
  for_each_numeric([&]<class T>(TypeTag<T>) {
    registry.add<SliceGradKernel<T>>("SparseSliceGrad",
                                     {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
