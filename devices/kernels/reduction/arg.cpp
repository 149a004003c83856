// ArgMax and ArgMin.
#include <algorithm>
#include <limits>

#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {

Result<int> arg_axis(const KernelContext& context) {
  const Tensor& input = context.input(0);
  const Tensor& axis_tensor = context.input(1);
  if (!axis_tensor.is_scalar())
    return context.fail("the dimension is {}, not a scalar",
                        axis_tensor.describe());
  int64_t axis = 0;
  detail::visit_among<int16_t, int32_t, int64_t>(
      axis_tensor.dtype(), [&]<class Index>(TypeTag<Index>) {
        axis = axis_tensor.scalar_value<Index>();
      });
  if (axis < -input.rank() || axis >= input.rank())
    return context.fail("dimension {} is not one of {}", axis,
                        input.describe());
  return int(axis < 0 ? axis + input.rank() : axis);
}

namespace {

// Whether a is a better choice than b; never if one is NaN.
struct Larger {
  template <class T>
  static bool better(T a, T b) {
    return a > b;
  }
  template <class T>
  static T worst() {
    return lowest_value<T>();
  }
};
struct Smaller {
  template <class T>
  static bool better(T a, T b) {
    return a < b;
  }
  template <class T>
  static T worst() {
    return highest_value<T>();
  }
};

// The first best position of a row; 0 if no element is better than the worst
// value, so that all are this value or NaN.
template <class Order, class T>
int64_t best_of_row(const T* in, int64_t count) {
  // Several candidates side by side, so that the loop is vectorised.
  constexpr int64_t kLanes = 32;
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, Order::template worst<T>());
  int64_t begin = 0;
  for (; begin + kLanes <= count; begin += kLanes)
    for (int64_t j = 0; j < kLanes; ++j)
      lanes[j] =
          Order::better(in[begin + j], lanes[j]) ? in[begin + j] : lanes[j];
  T best = Order::template worst<T>();
  for (T lane : lanes) best = Order::better(lane, best) ? lane : best;
  for (; begin < count; ++begin)
    best = Order::better(in[begin], best) ? in[begin] : best;
  if (!Order::better(best, Order::template worst<T>())) return 0;
  for (int64_t i = 0; i < count; ++i)
    if (in[i] == best) return i;
  return 0;
}

constexpr int64_t kColumns = 256;

// The first best positions of `width` neighbouring columns, at most kColumns,
// of rows `step` apart.
template <class Order, class T>
void best_of_columns(const KernelContext& context, const T* in, int64_t count,
                     int64_t step, int64_t width, int64_t* out) {
  T best[kColumns];
  for (int64_t j = 0; j < width; ++j) {
    best[j] = Order::template worst<T>();
    out[j] = 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (i % kColumns == 0) context.check_cancelled();
    for (int64_t j = 0; j < width; ++j) {
      const T value = in[i * step + j];
      if (Order::better(value, best[j])) {
        best[j] = value;
        out[j] = i;
      }
    }
  }
}

// The best positions of `outer` blocks of `count` rows and `inner` columns.
template <class Order, class T>
void search(const KernelContext& context, int64_t outer, int64_t count,
            int64_t inner, const void* in, int64_t* out) {
  const int64_t width = std::min(inner, kColumns);
  const int64_t tiles_in_block = (inner + width - 1) / width;
  context.parallel_for(
      outer * tiles_in_block, 2 + double(count * width) * 0.5,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t block = i / tiles_in_block;
          const int64_t column = i % tiles_in_block * width;
          const T* first =
              static_cast<const T*>(in) + block * count * inner + column;
          int64_t* to = out + block * inner + column;
          if (inner == 1)
            *to = best_of_row<Order>(first, count);
          else
            best_of_columns<Order>(context, first, count, inner,
                                   std::min(width, inner - column), to);
        }
      });
}
using SearchFn = decltype(&search<Larger, float>);

class ArgKernel final : public Kernel {
 public:
  ArgKernel(const KernelInfo&, SearchFn search) : search_(search) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int axis, arg_axis(context));
    const int64_t count = input.dim(axis);
    if (count == 0)
      return context.fail("dimension {} of {} is empty", axis,
                          input.describe());
    Shape shape;
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < input.rank(); ++i) {
      if (i == axis) continue;
      shape.add_dim(input.dim(i));
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (shape.num_elements() == 0) return Status();
    for (int i = 0; i < input.rank(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= input.dim(i);
    if (out->dtype() == DataType::kInt64) {
      search_(context, outer, count, inner, input.raw(),
              out->mutable_data<int64_t>());
      return Status();
    }
    int64_t last = 0;  // the last position that the type can hold
    detail::visit_among<int16_t, uint16_t, int32_t>(
        out->dtype(), [&]<class Index>(TypeTag<Index>) {
          last = int64_t{std::numeric_limits<Index>::max()};
        });
    if (count - 1 > last)
      return context.fail("a position in {} does not fit in {}",
                          input.describe(), dtype_name(out->dtype()));
    TAGFLOW_ASSIGN(Tensor positions,
                   context.allocate_temp(DataType::kInt64, shape));
    search_(context, outer, count, inner, input.raw(),
            positions.mutable_data<int64_t>());
    detail::visit_among<int16_t, uint16_t, int32_t>(
        out->dtype(), [&]<class Index>(TypeTag<Index>) {
          std::ranges::copy(positions.flat<int64_t>(),
                            out->mutable_data<Index>());
        });
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 0.5;
  }

 private:
  SearchFn search_;
};

}  // namespace

void register_arg_reduction_kernels(KernelRegistry& registry) {
  const auto add = [&]<class T>(TypeTag<T>) {
    const TypeLimits types = {{"T", {kDataTypeOf<T>}}};
    registry.add<ArgKernel>("ArgMax", types, &search<Larger, T>);
    registry.add<ArgKernel>("ArgMin", types, &search<Smaller, T>);
  };
  for_each_real(add);
  for_each<bool>(add);
}

}  // namespace tagflow::devices
