// RandomPoisson, RandomPoissonV2, StatelessRandomPoisson.
#include <math.h>  // lgamma_r, which writes no global variable

#include <cmath>

#include "devices/kernels/random/samples.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// Small rates use Knuth (The Art of Computer Programming 2, 3.4.1): the number
// of uniform numbers that can be multiplied before the product is e^-rate.
// Others use Hormann: "The transformed rejection method for generating Poisson
// random variables" (Insurance: Mathematics and Economics 12, 1993), PTRS,
// whose names are used here.
class PoissonSampler {
 public:
  // Numbers above `limit` are rejected. REQUIRES: 0 <= rate <= limit.
  PoissonSampler(double rate, double limit)
      : rate_(rate),
        limit_(limit),
        exp_rate_(std::exp(-rate)),
        log_rate_(std::log(rate)),
        b_(0.931 + 2.53 * std::sqrt(rate)),
        a_(-0.059 + 0.02483 * b_),
        inverse_alpha_(1.1239 + 1.1328 / (b_ - 3.4)),
        v_r_(0.9277 - 3.6224 / (b_ - 2)) {}

  double draw(const Philox& stream, uint64_t number) const {
    Philox own = stream.skipped(kBlocksOfSample * number);
    BackwardUnits units(own);
    return rate_ < 10 ? draw_small(units) : draw_large(units);
  }

 private:
  double draw_small(BackwardUnits& units) const {
    double product = units.next(), k = 0;
    for (; product > exp_rate_; ++k) product *= units.next();
    return k;
  }
  double draw_large(BackwardUnits& units) const {
    while (true) {
      const double u = units.next() - 0.5;
      const double v = units.next();
      const double us = 0.5 - std::abs(u);
      const double k = std::floor((2 * a_ / us + b_) * u + rate_ + 0.43);
      if (k > limit_) continue;
      if (us >= 0.07 && v <= v_r_) return k;
      if (k < 0 || (us < 0.013 && v > us)) continue;
      int sign = 0;
      const double s = std::log(v * inverse_alpha_ / (a_ / (us * us) + b_));
      const double t = -rate_ + k * log_rate_ - ::lgamma_r(k + 1, &sign);
      if (s <= t) return k;
    }
  }

  double rate_, limit_;
  double exp_rate_;
  double log_rate_, b_, a_, inverse_alpha_, v_r_;
};

template <class Rate, class T>
Status draw_poisson(const KernelContext& context, const SampleLayout& layout,
                    const Philox& stream, const Tensor& rate,
                    double nanoseconds, Tensor& output) {
  const Rate* rates = rate.data<Rate>();
  const double limit = highest_sample<T>();
  for (int64_t i = 0; i < layout.parameters; ++i) {
    if (!(double(rates[i]) >= 0))
      return context.fail("rates must not be negative, element {} is {}", i,
                          double(rates[i]));
    if (double(rates[i]) > limit)
      return context.fail("samples of rate {}, element {}, are beyond {}",
                          double(rates[i]), i, dtype_name(kDataTypeOf<T>));
  }
  draw_samples(
      context, layout, stream, nanoseconds, output.mutable_data<T>(),
      [&](int64_t i) { return PoissonSampler(double(rates[i]), limit); });
  return {};
}

// Calls f(TypeTag<T>) for a type of rates and of samples.
template <class F>
void visit_poisson(DataType dtype, F&& f) {
  tagflow::detail::visit_among<Half, float, double, int32_t, int64_t>(dtype, f);
}

class PoissonKernel final : public RandomKernel {
 public:
  PoissonKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, 80), source_(source) {}

  Status compute(KernelContext& context) const override {
    const Tensor& rate = context.input(1 + source_inputs(source_));
    TAGFLOW_ASSIGN(const SampleLayout layout,
                   sample_layout(context, source_, rate.shape(), "the rates"));
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, layout.shape));
    if (output->num_elements() == 0) return {};
    Status status;
    visit_poisson(rate.dtype(), [&]<class Rate>(TypeTag<Rate>) {
      visit_poisson(output->dtype(), [&]<class T>(TypeTag<T>) {
        status = draw_poisson<Rate, T>(context, layout, stream, rate,
                                       nanoseconds(), *output);
      });
    });
    return status;
  }

 private:
  double elements(const KernelContext& context) const override {
    const double count = RandomKernel::elements(context);
    if (source_ != RandomSource::kNode) return count;
    return count * double(context.input(1).num_elements());
  }

  RandomSource source_;
};

}  // namespace

void register_random_poisson_kernels(KernelRegistry& registry) {
  for (const char* op : {"RandomPoisson", "RandomPoissonV2"})
    registry.add<PoissonKernel>(op, {}, RandomSource::kNode);
  registry.add<PoissonKernel>("StatelessRandomPoisson", {},
                              RandomSource::kSeed);
}

}  // namespace tagflow::devices
