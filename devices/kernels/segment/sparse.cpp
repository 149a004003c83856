// SparseSegmentSum, -Mean, -SqrtN, with and without num_segments, and their
// gradients.
#include <algorithm>
#include <cmath>

#include "devices/kernel_inputs.h"
#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/segment/rows.h"

namespace tagflow::devices {
namespace {

// The sum divided by the square root of the number of rows.
template <class T>
struct SqrtNOp : SumOp<T> {
  using typename SumOp<T>::Acc;
  static T finish(Acc sum, int64_t count) {
    return static_cast<T>(sum / static_cast<Acc>(std::sqrt(double(count))));
  }
};

Status check_indices(const KernelContext& context, const Tensor& indices,
                     int64_t rows) {
  if (indices.rank() != 1)
    return context.fail("indices are {}, not a vector", indices.describe());
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t index = indices.data<int64_t>()[i];
    if (index < 0 || index >= rows)
      return context.fail("indices[{}] = {} is out of range [0, {})", i, index,
                          rows);
  }
  return Status();
}

class SparseSegmentKernel final : public Kernel {
 public:
  SparseSegmentKernel(const KernelInfo& info, ReduceSegmentsFn reduce)
      : reduce_(reduce), has_count_(info.num_inputs() == 4) {}

  Status compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    if (data.rank() == 0)
      return context.fail("data is a scalar; it must have rows");
    TAGFLOW_ASSIGN(const Tensor indices, as_int64(context, context.input(1)));
    TAGFLOW_ASSIGN(const Tensor ids, as_int64(context, context.input(2)));
    TAGFLOW_RETURN_IF_ERROR(check_indices(context, indices, data.dim(0)));
    const int64_t count = indices.dim(0);
    TAGFLOW_RETURN_IF_ERROR(check_sorted_ids(context, ids, count));
    const int64_t last = count == 0 ? -1 : ids.data<int64_t>()[count - 1];
    if (last == std::numeric_limits<int64_t>::max())
      return context.fail("segment id {} is too large", last);
    int64_t segments = last + 1;
    if (has_count_) {
      TAGFLOW_ASSIGN(segments, row_count(context, 3));
      if (last >= segments)
        return context.fail("segment id {} is not below num_segments {}", last,
                            segments);
    }
    TAGFLOW_ASSIGN(const Shape shape, rows_shape(segments, data, 1));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    const SegmentedRows rows{data.raw(), row_size(data, 1),
                             indices.data<int64_t>(), ids.data<int64_t>(),
                             count};
    reduce_(context, rows, segments, 0, out->mutable_raw());
    return Status();
  }

  double cost(const KernelContext& context) const override {
    const Tensor& data = context.input(0);
    if (data.rank() == 0) return 0;
    return 100 + double(context.input(1).num_elements()) *
                     double(row_size(data, 1)) * 0.5;
  }

 private:
  ReduceSegmentsFn reduce_;
  bool has_count_;
};

enum class Scale : uint8_t { kNone, kMean, kSqrtN };

// Row indices[i] of the output gets the gradient of segment ids[i], divided as
// in the forward op. The V2 op outputs only rows that have a gradient, and
// their indices.
template <class T>
class SparseSegmentGradKernel : public Kernel {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;

 public:
  explicit SparseSegmentGradKernel(const KernelInfo& info)
      : scale_(info.node().op().find("Mean") != std::string::npos ? Scale::kMean
               : info.node().op().find("SqrtN") != std::string::npos
                   ? Scale::kSqrtN
                   : Scale::kNone) {}

  Status compute(KernelContext& context) const override {
    const Tensor& grad = context.input(0);
    if (grad.rank() == 0)
      return context.fail("grad is a scalar; it must have rows");
    TAGFLOW_ASSIGN(const Tensor indices, as_int64(context, context.input(1)));
    TAGFLOW_ASSIGN(const Tensor ids, as_int64(context, context.input(2)));
    TAGFLOW_ASSIGN(int64_t rows, row_count(context, 3));
    TAGFLOW_RETURN_IF_ERROR(check_indices(context, indices, rows));
    const bool is_unique = context.num_outputs() == 2;
    const auto all = indices.flat<int64_t>();
    std::vector<int64_t> unique;
    if (is_unique) {
      unique.assign(all.begin(), all.end());
      std::ranges::sort(unique, [&](int64_t a, int64_t b) {
        context.check_cancelled();
        return a < b;
      });
      unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
      rows = int64_t(unique.size());
      TAGFLOW_RETURN_IF_ERROR(set_unique(context, unique));
    }
    const auto row_of = [&](int64_t index) {
      return is_unique
                 ? std::ranges::lower_bound(unique, index) - unique.begin()
                 : index;
    };
    const int64_t segments = grad.dim(0), count = indices.dim(0);
    if (ids.rank() != 1 || ids.dim(0) != count)
      return context.fail("segment_ids are {} for {} indices", ids.describe(),
                          count);
    TAGFLOW_ASSIGN(Tensor counts,
                   context.allocate_temp(DataType::kInt64, Shape{segments}));
    int64_t* in_segment = counts.mutable_data<int64_t>();
    std::fill_n(in_segment, segments, 0);
    const int64_t* id = ids.data<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      if (id[i] < 0 || id[i] >= segments)
        return context.fail("segment_ids[{}] = {} is out of range [0, {})", i,
                            id[i], segments);
      ++in_segment[id[i]];
    }
    TAGFLOW_ASSIGN(const Shape shape, rows_shape(rows, grad, 1));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    TAGFLOW_ASSIGN(Tensor wide, context.allocate_temp(kDataTypeOf<W>, shape));
    W* sum = wide.mutable_data<W>();
    context.for_blocks(wide.num_elements(), 0.5,
                       [&](int64_t begin, int64_t end) {
                         std::fill(sum + begin, sum + end, W(0));
                       });
    const int64_t size = row_size(grad, 1);
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      const W factor = factor_of(in_segment[id[i]]);
      const T* from = grad.data<T>() + id[i] * size;
      W* to = sum + row_of(all[size_t(i)]) * size;
      for (int64_t j = 0; j < size; ++j) to[j] += W(from[j]) * factor;
    }
    T* const to = out->mutable_data<T>();
    context.for_blocks(wide.num_elements(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(sum[i]);
    });
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 2;
  }

 private:
  static Status set_unique(KernelContext& context,
                           const std::vector<int64_t>& unique) {
    TAGFLOW_ASSIGN(Tensor * out,
                   context.allocate_output(1, Shape{int64_t(unique.size())}));
    for (size_t i = 0; i < unique.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          store_index(context, *out, int64_t(i), unique[i]));
    return {};
  }
  // The factor of one row's gradient.
  W factor_of(int64_t rows) const {
    if (scale_ == Scale::kMean) return W(1) / W(rows);
    if (scale_ == Scale::kSqrtN) return W(1) / std::sqrt(W(rows));
    return 1;
  }

  Scale scale_;
};

void add_sparse_segment_kernels(KernelRegistry& registry, const std::string& op,
                                DataType type, ReduceSegmentsFn reduce) {
  for (const char* variant : {"", "WithNumSegments"})
    registry.add<SparseSegmentKernel>(op + variant, {{"T", {type}}}, reduce);
}

}  // namespace

void register_sparse_segment_kernels(KernelRegistry& registry) {
  for_each_real([&]<class T>(TypeTag<T>) {
    add_sparse_segment_kernels(registry, "SparseSegmentSum", kDataTypeOf<T>,
                               &reduce_segments<SumOp<T>>);
  });
  for_each_floating([&]<class T>(TypeTag<T>) {
    add_sparse_segment_kernels(registry, "SparseSegmentMean", kDataTypeOf<T>,
                               &reduce_segments<MeanOp<T>>);
    add_sparse_segment_kernels(registry, "SparseSegmentSqrtN", kDataTypeOf<T>,
                               &reduce_segments<SqrtNOp<T>>);
    for (const std::string op :
         {"SparseSegmentSumGrad", "SparseSegmentMeanGrad",
          "SparseSegmentSqrtNGrad"})
      for (const char* version : {"", "V2"})
        registry.add<SparseSegmentGradKernel<T>>(op + version,
                                                 {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
