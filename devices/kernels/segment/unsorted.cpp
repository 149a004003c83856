// UnsortedSegmentSum, -Prod, -Max, -Min.
#include "devices/kernel_inputs.h"
#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"
#include "devices/kernels/segment/ids.h"

namespace tagflow::devices {
namespace {

// Rows of `size` elements, and the segment of each.
struct UnsortedRows {
  const void* data;
  int64_t size;
  const int64_t* ids;
  int64_t count;
};

// What the kernel knows of one op and type.
struct SegmentLoops {
  DataType partial;  // the type of partial results
  void (*add)(const KernelContext& context, const UnsortedRows& rows,
              int64_t segments, void* out);
  // Rounds partial results; null if they have the type of the output.
  void (*round)(const KernelContext& context, const Tensor& partial,
                Tensor& out);
};

// The value of a segment without rows; for extremes a finite number.
template <class Op>
struct EmptySegment {
  using T = typename Op::In;
  static T value() {
    if constexpr (std::is_same_v<Op, ProductOp<T>>) return T(1);
    return T(0);
  }
};
template <class T>
struct EmptySegment<MaxOp<T>> {
  static T value() { return lowest_finite<T>(); }
};
template <class T>
struct EmptySegment<MinOp<T>> {
  static T value() { return highest_finite<T>(); }
};

template <class T>
using Partial = std::conditional_t<kIs16BitFloat<T>, float, T>;

// Workers own segments; each reads all ids but only its segments' rows.
template <class Op>
void add_rows(const KernelContext& context, const UnsortedRows& rows,
              int64_t segments, void* out) {
  using T = typename Op::In;
  using Sum = Partial<T>;
  const int64_t size = rows.size;
  if (segments == 0 || size == 0) return;
  // A look takes place about every 2^16 elements.
  const int64_t look = std::clamp<int64_t>((1 << 16) / size, 1, 1 << 10);
  const auto add = [&](int64_t begin, int64_t end) {
    Sum* sums = static_cast<Sum*>(out);
    Sum* const first = sums + begin * size;
    context.for_blocks(
        (end - begin) * size, 0.5, [&](int64_t from, int64_t to) {
          std::fill(first + from, first + to, Sum(EmptySegment<Op>::value()));
        });
    for (int64_t i = 0; i < rows.count; ++i) {
      if (i % look == 0) context.check_cancelled();
      const int64_t id = rows.ids[i];
      if (id < begin || id >= end) continue;
      Sum* to = sums + id * size;
      const T* from = static_cast<const T*>(rows.data) + i * size;
      for (int64_t j = 0; j < size; ++j)
        to[j] = static_cast<Sum>(Op::combine(
            static_cast<typename Op::Acc>(to[j]), Op::load(from[j])));
    }
  };
  constexpr int64_t kWideRow = 16;
  if (size < kWideRow)
    add(0, segments);
  else
    context.parallel_for(segments,
                         double(size) * double(rows.count) / double(segments),
                         add, double(rows.count));
}

template <class T>
void round_partial(const KernelContext& context, const Tensor& partial,
                   Tensor& out) {
  const auto* from = partial.data<Partial<T>>();
  T* to = out.mutable_data<T>();
  context.for_blocks(partial.num_elements(), 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         to[i] = static_cast<T>(from[i]);
                     });
}

class UnsortedSegmentKernel final : public Kernel {
 public:
  UnsortedSegmentKernel(const KernelInfo&, const SegmentLoops& loops)
      : loops_(loops) {}

  Status compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    TAGFLOW_ASSIGN(const Tensor ids, as_int64(context, context.input(1)));
    TAGFLOW_ASSIGN(const int64_t segments, row_count(context, 2));
    TAGFLOW_RETURN_IF_ERROR(check(context, data, ids, segments));
    TAGFLOW_ASSIGN(const Shape shape, rows_shape(segments, data, ids.rank()));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    const UnsortedRows rows{data.raw(), row_size(data, ids.rank()),
                            ids.data<int64_t>(), ids.num_elements()};
    if (loops_.round == nullptr) {
      loops_.add(context, rows, segments, out->mutable_raw());
      return Status();
    }
    TAGFLOW_ASSIGN(Tensor partial,
                   context.allocate_temp(loops_.partial, shape));
    loops_.add(context, rows, segments, partial.mutable_raw());
    loops_.round(context, partial, *out);
    return Status();
  }

  double cost(const KernelContext& context) const override {
    const auto elements = double(context.input(0).num_elements());
    const auto rows = double(context.input(1).num_elements());
    const Tensor& segments = context.input(2);
    const double results =
        segments.is_scalar()
            ? double(index_at(segments, 0)) * elements / std::max(rows, 1.0)
            : 0;
    return 100 + elements + 0.5 * results;
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
    for (int64_t i = 0; i < ids.num_elements(); ++i) {
      context.check_cancelled();
      if (ids.data<int64_t>()[i] >= segments)
        return context.fail("segment_ids[{}] = {} is out of range [0, {})", i,
                            ids.data<int64_t>()[i], segments);
    }
    return Status();
  }

  SegmentLoops loops_;
};

template <class Op>
void add_unsorted(KernelRegistry& registry, const char* op) {
  using T = typename Op::In;
  SegmentLoops loops{kDataTypeOf<Partial<T>>, &add_rows<Op>, nullptr};
  if constexpr (!std::is_same_v<Partial<T>, T>) loops.round = round_partial<T>;
  registry.add<UnsortedSegmentKernel>(op, {{"T", {kDataTypeOf<T>}}}, loops);
}

}  // namespace

void register_unsorted_segment_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    add_unsorted<SumOp<T>>(registry, "UnsortedSegmentSum");
    add_unsorted<ProductOp<T>>(registry, "UnsortedSegmentProd");
    if constexpr (!kComplexType<T>) {
      add_unsorted<MaxOp<T>>(registry, "UnsortedSegmentMax");
      add_unsorted<MinOp<T>>(registry, "UnsortedSegmentMin");
    }
  });
}

}  // namespace tagflow::devices
