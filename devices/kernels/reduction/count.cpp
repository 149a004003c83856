// Cumsum, Cumprod, Bincount, DenseBincount, HistogramFixedWidth.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// Integers wrap around: unsigned arithmetic makes that defined.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return T(uint64_t(a) + uint64_t(b));
  } else {
    return T(a + b);
  }
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return T(uint64_t(a) * uint64_t(b));
  } else {
    return T(a * b);
  }
}

// Cumsum and Cumprod.
class ScanKernel : public BytesKernel {
 public:
  explicit ScanKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.5),
        product_(info.node().op() == "Cumprod"),
        exclusive_(attr_of<bool>(info, "exclusive")),
        reverse_(attr_of<bool>(info, "reverse")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (!context.input(1).is_scalar())
      return context.fail("axis must be a scalar, is {}",
                          context.input(1).describe());
    TAGFLOW_ASSIGN(
        const int at,
        checked_axis(context, index_at(context.input(1), 0), input.rank()));
    TAGFLOW_ASSIGN(Tensor * output,
                   context.forward_or_allocate(0, 0, input.shape()));
    if (input.num_elements() == 0) return {};
    const bool known = visit_numeric(input.dtype(), [&]<class T>(TypeTag<T>) {
      if (product_) {
        scan<T>(
            context, at, T(1), [](T a, T b) { return times(a, b); }, *output);
      } else {
        scan<T>(
            context, at, T(0), [](T a, T b) { return plus(a, b); }, *output);
      }
    });
    if (!known)
      return error(Code::kUnimplemented, "[{}] cannot add elements of {}",
                   context.node().op(), input.describe());
    return {};
  }

 private:
  // Computes each row of `inner` elements from the previous one.
  template <class T, class F>
  void scan(const KernelContext& context, int at, T start, F combine,
            Tensor& output) const {
    const Shape shape = output.shape();
    const int64_t steps = shape.dim(at);
    const int64_t inner = product(shape.dims(), at + 1, shape.rank());
    const T* input = context.input(0).data<T>();
    T* to = output.mutable_data<T>();
    const int64_t step = reverse_ ? -inner : inner;
    // Some neighbouring lanes at a time, row by row.
    constexpr int64_t kLanes = 64, kLook = 1 << 10;
    auto body = [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t at_inner = begin % inner;
        const int64_t lanes = std::min({kLanes, end - begin, inner - at_inner});
        int64_t i = begin / inner * steps * inner + at_inner;
        if (reverse_) i += (steps - 1) * inner;
        std::array<T, kLanes> sums;
        std::fill_n(sums.begin(), lanes, start);
        for (int64_t s = 0; s < steps; ++s, i += step) {
          if (s % kLook == 0) context.check_cancelled();
          for (int64_t lane = 0; lane < lanes; ++lane) {
            // The input may be the output: read before writing.
            T& sum = sums[size_t(lane)];
            const T next = combine(sum, input[i + lane]);
            to[i + lane] = exclusive_ ? sum : next;
            sum = next;
          }
        }
        begin += lanes;
      }
    };
    context.parallel_for(output.num_elements() / steps, double(steps), body);
  }

  bool product_, exclusive_, reverse_;
};

// Bincount and DenseBincount: the number of occurrences of each value below
// `size`, or the sum of its weights. A matrix is counted row by row.
class BincountKernel : public BytesKernel {
 public:
  explicit BincountKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1),
        dense_(info.node().op() == "DenseBincount"),
        binary_(attr_of<bool>(info, "binary_output")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(0);
    const Tensor& weights = context.input(2);
    if (!context.input(1).is_scalar())
      return context.fail("size must be a scalar, is {}",
                          context.input(1).describe());
    const int64_t size = index_at(context.input(1), 0);
    if (size < 0) return context.fail("size {} is negative", size);
    if (dense_ && values.rank() > 2)
      return context.fail("input must be at most a matrix, is {}",
                          values.describe());
    if (weights.num_elements() > 0 && !(weights.shape() == values.shape()))
      return context.fail("weights {} do not fit {}", weights.describe(),
                          values.describe());
    for (int64_t i = 0; i < values.num_elements(); ++i)
      if (index_at(values, i) < 0)
        return context.fail("input {} is negative: {}", i, index_at(values, i));
    const bool by_row = dense_ && values.rank() == 2;
    Shape shape({size});
    if (by_row) shape.insert_dim(0, values.dim(0));
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    zero_elements(context, *output);
    detail::visit_among<int32_t, int64_t, float, double>(
        output->dtype(), [&]<class T>(TypeTag<T>) {
          count<T>(context, size, by_row ? values.dim(1) : 0, *output);
        });
    return {};
  }

 private:
  // Rows of `columns` values; 0 for one row of all.
  template <class T>
  void count(const KernelContext& context, int64_t size, int64_t columns,
             Tensor& output) const {
    const Tensor& values = context.input(0);
    const Tensor& weights = context.input(2);
    T* bins = output.mutable_data<T>();
    const T* weight =
        weights.num_elements() > 0 && !binary_ ? weights.data<T>() : nullptr;
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      context.check_cancelled();
      const int64_t value = index_at(values, i);
      if (value >= size) continue;
      T& bin = bins[(columns > 0 ? i / columns * size : 0) + value];
      bin = binary_ ? T(1) : plus(bin, weight ? weight[i] : T(1));
    }
  }

  bool dense_, binary_;
};

// Counts in `nbins` equal bins of a range; values outside count in the first or
// last bin, NaN in none.
class HistogramKernel : public BytesKernel {
 public:
  explicit HistogramKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1) {}

  Status compute(KernelContext& context) const override {
    const Tensor& range = context.input(1);
    if (range.rank() != 1 || range.dim(0) != 2)
      return context.fail("value_range must be a vector of two, is {}",
                          range.describe());
    if (!context.input(2).is_scalar())
      return context.fail("nbins must be a scalar, is {}",
                          context.input(2).describe());
    const int64_t bins = index_at(context.input(2), 0);
    if (bins <= 0) return context.fail("nbins {} is not positive", bins);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {bins}));
    zero_elements(context, *output);
    Status status;
    detail::visit_among<int32_t, int64_t, float, double>(
        range.dtype(), [&]<class T>(TypeTag<T>) {
          if (output->dtype() == DataType::kInt64) {
            status = count<T, int64_t>(context, bins, *output);
          } else {
            status = count<T, int32_t>(context, bins, *output);
          }
        });
    return status;
  }

 private:
  template <class T, class Count>
  static Status count(const KernelContext& context, int64_t bins,
                      Tensor& output) {
    const T* range = context.input(1).data<T>();
    const auto low = double(range[0]), high = double(range[1]);
    // Rejects NaN, too.
    if (!(low < high) || !std::isfinite(low) || !std::isfinite(high))
      return context.fail("value_range [{}, {}] is empty", low, high);
    const double step = (high - low) / double(bins);
    auto* counts = output.mutable_data<Count>();
    for (const T& value : context.input(0).template flat<T>()) {
      context.check_cancelled();
      const double at = (double(value) - low) / step;
      if (at != at) continue;
      const double clamped = std::clamp(at, 0.0, double(bins - 1));
      ++counts[int64_t(clamped)];
    }
    return {};
  }
};

}  // namespace

void register_count_kernels(KernelRegistry& registry) {
  registry.add<ScanKernel>("Cumsum");
  registry.add<ScanKernel>("Cumprod");
  registry.add<BincountKernel>("Bincount");
  registry.add<BincountKernel>("DenseBincount");
  registry.add<HistogramKernel>("HistogramFixedWidth");
}

}  // namespace tagflow::devices
