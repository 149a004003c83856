// SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin.
#include "devices/cpu/kernels.h"
#include "devices/cpu/reduction/ops.h"
#include "devices/cpu/segment/rows.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {
namespace {

class SegmentKernel final : public Kernel {
 public:
  SegmentKernel(const KernelInfo& info, ReduceSegmentsFn reduce)
      : reduce_(reduce), empty_(info.node().op() == "SegmentProd" ? 1 : 0) {}

  Status compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    if (data.rank() == 0)
      return context.fail("data is a scalar; it must have rows");
    TAGFLOW_ASSIGN(const Tensor ids, as_int64(context, context.input(1)));
    const int64_t count = data.dim(0);
    TAGFLOW_RETURN_IF_ERROR(check_sorted_ids(context, ids, count));
    const int64_t* id = ids.data<int64_t>();
    if (count > 0 && id[count - 1] == std::numeric_limits<int64_t>::max())
      return context.fail("segment id {} is too large", id[count - 1]);
    const int64_t segments = count == 0 ? 0 : id[count - 1] + 1;
    TAGFLOW_ASSIGN(const Shape shape, rows_shape(segments, data, 1));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    const SegmentedRows rows{data.raw(), row_size(data, 1), nullptr, id, count};
    reduce_(context, rows, segments, empty_, out->mutable_raw());
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.5;
  }

 private:
  ReduceSegmentsFn reduce_;
  int empty_;
};

}  // namespace

void register_sorted_segment_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    const auto add = [&](const char* op, ReduceSegmentsFn reduce) {
      registry.add<SegmentKernel>(op, {{"T", {kDataTypeOf<T>}}}, reduce);
    };
    add("SegmentSum", &reduce_segments<SumOp<T>>);
    add("SegmentMean", &reduce_segments<MeanOp<T>>);
    add("SegmentProd", &reduce_segments<ProductOp<T>>);
    if constexpr (!kComplexType<T>) {
      add("SegmentMax", &reduce_segments<MaxOp<T>>);
      add("SegmentMin", &reduce_segments<MinOp<T>>);
    }
  });
}

}  // namespace tagflow::devices
