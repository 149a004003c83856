// CumulativeLogsumexp.
#include <cmath>

#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

// log(exp(a) + exp(b)) without overflow; NaN if one is.
template <class W>
W log_add(W a, W b) {
  const W high = a > b ? a : b;
  const W low = a > b ? b : a;
  if (std::isnan(a) || std::isnan(b)) return a + b;
  // Equal infinities would give NaN below.
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

template <class T>
class CumulativeLogsumexpKernel : public Kernel {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;

 public:
  CumulativeLogsumexpKernel(bool exclusive, bool reverse)
      : exclusive_(exclusive), reverse_(reverse) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const bool exclusive, info.attr<bool>("exclusive"));
    TAGFLOW_ASSIGN(const bool reverse, info.attr<bool>("reverse"));
    return std::unique_ptr<Kernel>(
        std::make_unique<CumulativeLogsumexpKernel>(exclusive, reverse));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (!context.input(1).is_scalar())
      return context.fail("the axis is {}, not a scalar",
                          context.input(1).describe());
    TAGFLOW_ASSIGN(const auto chosen,
                   reduced_dims(context, input, context.input(1)));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, input.shape()));
    if (input.num_elements() == 0) return Status();
    int64_t count = 1, inner = 1, outer = 1;
    bool before = true;
    for (int i = 0; i < input.rank(); ++i) {
      if (chosen[size_t(i)]) {
        count = input.dim(i);
        before = false;
      } else {
        (before ? outer : inner) *= input.dim(i);
      }
    }
    const T* in = input.data<T>();
    T* to = out->mutable_data<T>();
    context.parallel_for(
        outer * inner, 20.0 * double(count), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t start = i / inner * count * inner + i % inner;
            scan(context, in + start, count, inner, to + start);
          }
        });
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 100 + double(context.input(0).num_elements()) * 20;
  }

 private:
  void scan(const KernelContext& context, const T* in, int64_t count,
            int64_t step, T* out) const {
    W sum = -std::numeric_limits<W>::infinity();
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      const int64_t at = (reverse_ ? count - 1 - i : i) * step;
      const W next = log_add(sum, static_cast<W>(in[at]));
      out[at] = static_cast<T>(exclusive_ ? sum : next);
      sum = next;
    }
  }

  bool exclusive_, reverse_;
};

}  // namespace

void register_logsumexp_kernels(KernelRegistry& registry) {
  for_each_floating([&]<class T>(TypeTag<T>) {
    registry.add<CumulativeLogsumexpKernel<T>>("CumulativeLogsumexp",
                                               {{"T", {kDataTypeOf<T>}}});
  });
}

}  // namespace tagflow::devices
