// SparseReduceSum, SparseReduceMax, and both to a sparse tensor.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

namespace {

// The dimensions that are kept.
struct Kept {
  std::vector<bool> is_reduced;
  Shape shape;          // with sizes of 1 if they are kept
  Shape::Dims strides;  // of the output, per input dimension
};

Result<Kept> kept_dims(const KernelContext& context, const Shape& shape,
                       bool keep_dims) {
  const Tensor& axes = context.input(3);
  const int rank = shape.rank();
  if (axes.rank() > 1)
    return context.fail("reduction_axes must be a vector, got {}",
                        axes.describe());
  Kept kept;
  kept.is_reduced.assign(size_t(rank), false);
  for (int64_t axis : graph::index_elements(axes)) {
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis, rank, "reduction axis"));
    kept.is_reduced[size_t(at)] = true;
  }
  kept.strides.assign(size_t(rank), 0);
  int64_t stride = 1;
  for (int d = rank; d-- > 0;) {
    if (kept.is_reduced[size_t(d)]) continue;
    kept.strides[size_t(d)] = stride;
    // May overflow only if there are no elements.
    stride = int64_t(uint64_t(stride) * uint64_t(shape.dim(d)));
  }
  for (int d = 0; d < rank; ++d) {
    if (!kept.is_reduced[size_t(d)]) kept.shape.add_dim(shape.dim(d));
    if (kept.is_reduced[size_t(d)] && keep_dims) kept.shape.add_dim(1);
  }
  TAGFLOW_ASSIGN(kept.shape, Shape::make(kept.shape.dims()));
  return kept;
}

template <class Op>
class ReduceSparseKernel : public SparseKernel {
  using T = typename Op::In;
  using Acc = typename Op::Acc;

 public:
  explicit ReduceSparseKernel(const KernelInfo& info)
      : keep_dims_(attr_of<bool>(info, "keep_dims")),
        to_sparse_(info.num_outputs() == 3) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const SparseIndices sparse, sparse_input(context));
    TAGFLOW_ASSIGN(const Kept kept,
                   kept_dims(context, sparse.shape, keep_dims_));
    TAGFLOW_RETURN_IF_ERROR(check_inside(context, sparse));
    // The position of each element in the output, sorted by it.
    std::vector<std::pair<int64_t, int64_t>> places;
    places.reserve(size_t(sparse.count));
    for (int64_t i = 0; i < sparse.count; ++i) {
      context.check_cancelled();
      places.emplace_back(offset_of(sparse.at(i), kept.strides), i);
    }
    std::ranges::sort(places, [&](const auto& a, const auto& b) {
      context.check_cancelled();
      return a < b;
    });
    std::vector<Group> groups;
    for (const auto& [place, i] : places) {
      context.check_cancelled();
      if (groups.empty() || groups.back().place != place)
        groups.push_back({place, i, Op::initial()});
      Acc& acc = groups.back().acc;
      acc = Op::combine(acc, Op::load(context.input(1).data<T>()[i]));
    }
    return to_sparse_ ? set_sparse(context, sparse, kept, groups)
                      : set_dense(context, kept, groups);
  }

 private:
  struct Group {
    int64_t place;  // in the output
    int64_t first;  // an element of it
    Acc acc;
  };

  static Status set_dense(KernelContext& context, const Kept& kept,
                          const std::vector<Group>& groups) {
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, kept.shape));
    zero_elements(context, *out);
    for (const Group& group : groups) {
      context.check_cancelled();
      out->mutable_data<T>()[group.place] = Op::finish(group.acc, 1);
    }
    return {};
  }

  Status set_sparse(KernelContext& context, const SparseIndices& sparse,
                    const Kept& kept, const std::vector<Group>& groups) const {
    const auto count = int64_t(groups.size());
    TAGFLOW_ASSIGN(Tensor * indices,
                   context.allocate_output(0, Shape{count, kept.shape.rank()}));
    TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(1, Shape{count}));
    auto* to = indices->mutable_data<int64_t>();
    T* value = values->mutable_data<T>();
    for (const Group& group : groups) {
      context.check_cancelled();
      const auto at = sparse.at(group.first);
      for (size_t d = 0; d < at.size(); ++d) {
        if (!kept.is_reduced[d]) *to++ = at[d];
        if (kept.is_reduced[d] && keep_dims_) *to++ = 0;
      }
      *value++ = Op::finish(group.acc, 1);
    }
    return set_shape_output(context, 2, kept.shape);
  }

  bool keep_dims_, to_sparse_;
};

}  // namespace

void register_sparse_reduce_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    for (const char* op : {"SparseReduceSum", "SparseReduceSumSparse"})
      registry.add<ReduceSparseKernel<SumOp<T>>>(op, {{"T", {kDataTypeOf<T>}}});
  });
  for_each_real([&]<class T>(TypeTag<T>) {
    for (const char* op : {"SparseReduceMax", "SparseReduceMaxSparse"})
      registry.add<ReduceSparseKernel<MaxOp<T>>>(op, {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
