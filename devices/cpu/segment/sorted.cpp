// SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin.
#include "devices/cpu/reduction/kernel.h"
#include "devices/cpu/reduction/ops.h"
#include "devices/cpu/segment/rows.h"

namespace tagflow::devices {
namespace {

template <class Op>
class SegmentKernel : public Kernel {
  using T = typename Op::In;

 public:
  explicit SegmentKernel(const KernelInfo& info)
      : empty_(info.node().op() == "SegmentProd" ? T(1) : T(0)) {}

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
    const SegmentedRows<T> rows{data.data<T>(), row_size(data, 1), nullptr, id,
                                count};
    reduce_segments<Op>(context, rows, segments, empty_,
                        out->mutable_data<T>());
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.5;
  }

 private:
  T empty_;
};

}  // namespace

void register_sorted_segment_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    const auto add = [&]<class Op>(const char* name, TypeTag<Op>) {
      registry.add<SegmentKernel<Op>>(name, {{"T", {kDataTypeOf<T>}}});
    };
    add("SegmentSum", TypeTag<SumOp<T>>{});
    add("SegmentMean", TypeTag<MeanOp<T>>{});
    add("SegmentProd", TypeTag<ProductOp<T>>{});
    if constexpr (!kComplexType<T>) {
      add("SegmentMax", TypeTag<MaxOp<T>>{});
      add("SegmentMin", TypeTag<MinOp<T>>{});
    }
  });
}

}  // namespace tagflow::devices
