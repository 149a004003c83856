// UnsortedSegmentSum, -Prod, -Max, -Min.
#include "devices/cpu/reduction/kernel.h"
#include "devices/cpu/reduction/ops.h"
#include "devices/cpu/segment/ids.h"

namespace tagflow::devices {
namespace {

// The value of a segment without rows; for extremes a finite number.
template <class Op, class T>
T empty_segment(std::string_view op) {
  if (op == "UnsortedSegmentProd") return T(1);
  if constexpr (!kComplexType<T>) {
    if (op == "UnsortedSegmentMax") return lowest_finite<T>();
    if (op == "UnsortedSegmentMin") return highest_finite<T>();
  }
  return T(0);
}

template <class Op>
class UnsortedSegmentKernel : public Kernel {
  using T = typename Op::In;
  // The type of partial results.
  using Sum = std::conditional_t<kIs16BitFloat<T>, float, T>;

 public:
  explicit UnsortedSegmentKernel(const KernelInfo& info)
      : empty_(empty_segment<Op, T>(info.node().op())) {}

  Status compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    TAGFLOW_ASSIGN(const Tensor ids, as_int64(context, context.input(1)));
    TAGFLOW_ASSIGN(const int64_t segments, row_count(context, 2));
    TAGFLOW_RETURN_IF_ERROR(check(context, data, ids, segments));
    TAGFLOW_ASSIGN(const Shape shape, rows_shape(segments, data, ids.rank()));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if constexpr (std::is_same_v<Sum, T>) {
      add_rows(context, data, ids, segments, out->mutable_data<T>());
    } else {
      TAGFLOW_ASSIGN(Tensor wide,
                     context.allocate_temp(kDataTypeOf<Sum>, shape));
      add_rows(context, data, ids, segments, wide.mutable_data<Sum>());
      for (int64_t i = 0; i < wide.num_elements(); ++i)
        out->mutable_data<T>()[i] = static_cast<T>(wide.data<Sum>()[i]);
    }
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements());
  }

 private:
  static Status check(const KernelContext& context, const Tensor& data,
                      const Tensor& ids, int64_t segments) {
    bool prefix = ids.rank() <= data.rank();
    for (int i = 0; prefix && i < ids.rank(); ++i)
      prefix = ids.dim(i) == data.dim(i);
    if (!prefix)
      return context.fail("segment_ids are {}, whose shape does not begin {}",
                          ids.describe(), data.describe());
    for (int64_t i = 0; i < ids.num_elements(); ++i)
      if (ids.data<int64_t>()[i] >= segments)
        return context.fail("segment_ids[{}] = {} is out of range [0, {})", i,
                            ids.data<int64_t>()[i], segments);
    return Status();
  }

  // Workers own segments; each reads all ids but only its segments' rows.
  void add_rows(const KernelContext& context, const Tensor& data,
                const Tensor& ids, int64_t segments, Sum* out) const {
    const int64_t size = row_size(data, ids.rank());
    const int64_t count = ids.num_elements();
    const T* in = data.data<T>();
    const int64_t* id = ids.data<int64_t>();
    const auto add = [&](int64_t begin, int64_t end) {
      std::fill_n(out + begin * size, (end - begin) * size, Sum(empty_));
      for (int64_t i = 0; i < count; ++i) {
        if (id[i] < begin || id[i] >= end) continue;
        Sum* to = out + id[i] * size;
        const T* from = in + i * size;
        for (int64_t j = 0; j < size; ++j)
          to[j] = static_cast<Sum>(Op::combine(
              static_cast<typename Op::Acc>(to[j]), Op::load(from[j])));
      }
    };
    if (segments == 0 || size == 0) return;
    constexpr int64_t kWideRow = 16;
    if (size < kWideRow)
      add(0, segments);
    else
      context.parallel_for(
          segments, double(size) * double(count) / double(segments), add);
  }

  T empty_;
};

}  // namespace

void register_unsorted_segment_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    const auto add = [&]<class Op>(const char* name, TypeTag<Op>) {
      registry.add<UnsortedSegmentKernel<Op>>(name, {{"T", {kDataTypeOf<T>}}});
    };
    add("UnsortedSegmentSum", TypeTag<SumOp<T>>{});
    add("UnsortedSegmentProd", TypeTag<ProductOp<T>>{});
    if constexpr (!kComplexType<T>) {
      add("UnsortedSegmentMax", TypeTag<MaxOp<T>>{});
      add("UnsortedSegmentMin", TypeTag<MinOp<T>>{});
    }
  });
}

}  // namespace tagflow::devices
