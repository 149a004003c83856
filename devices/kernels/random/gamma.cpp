// RandomGamma and its stateless forms.
#include <cmath>

#include "devices/kernels/random/samples.h"

namespace tagflow::devices {

namespace {

// By Marsaglia and Tsang: "A simple method for generating gamma variables" (ACM
// Transactions on Mathematical Software 26, 2000). d * v, for the cube v of a
// normal number, has almost the right distribution; some samples are rejected.
class GammaSampler {
 public:
  explicit GammaSampler(double alpha)
      : alpha_(alpha),
        d_(alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3)),
        c_(1.0 / 3 / std::sqrt(d_)) {}

  double draw(const Philox& stream, uint64_t number) const {
    Philox own = stream.skipped(kBlocksOfSample * number);
    BackwardUnits units(own);
    if (alpha_ == 1) return -std::log1p(-units.next());  // exponential
    BackwardNormals normals(own);
    while (true) {
      const double x = normals.next();
      double v = 1 + c_ * x;
      if (v <= 0) continue;
      v = v * v * v;
      const double u = units.next();
      // The first bound saves most samples the logarithms.
      if (u < 1 - 0.0331 * (x * x) * (x * x) ||
          std::log(u) < 0.5 * x * x + d_ * (1 - v + std::log(v))) {
        const double sample = d_ * v;
        // So far a sample for alpha + 1, if alpha < 1.
        if (alpha_ >= 1) return sample;
        return sample * std::pow(units.next(), 1 / alpha_);
      }
    }
  }

 private:
  double alpha_;
  double d_;
  double c_;
};

template <class T>
class GammaKernel final : public RandomKernel {
 public:
  GammaKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, 70), source_(source) {}

  Status compute(KernelContext& context) const override {
    const int at = 1 + source_inputs(source_);
    const Tensor& alpha = context.input(at);
    TAGFLOW_ASSIGN(const SampleLayout layout,
                   sample_layout(context, source_, alpha.shape(), "alpha"));
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, layout.shape));
    if (output->num_elements() == 0) return {};
    const T* alphas = alpha.data<T>();
    for (int64_t i = 0; i < layout.parameters; ++i)
      if (!(double(alphas[i]) >= 0))
        return context.fail("alpha must not be negative, element {} is {}", i,
                            double(alphas[i]));
    draw_samples(context, layout, stream, nanoseconds(),
                 output->mutable_data<T>(),
                 [&](int64_t i) { return GammaSampler(double(alphas[i])); });
    return {};
  }

 private:
  double elements(const KernelContext& context) const override {
    const double count = RandomKernel::elements(context);
    if (source_ != RandomSource::kNode) return count;
    return count * double(context.input(1).num_elements());
  }

  RandomSource source_;
};

template <class... Ts>
void add_gammas(KernelRegistry& registry) {
  (registry.add<GammaKernel<Ts>>("RandomGamma", {{"T", {kDataTypeOf<Ts>}}},
                                 RandomSource::kNode),
   ...);
  (registry.add<GammaKernel<Ts>>("StatelessRandomGammaV2",
                                 {{"dtype", {kDataTypeOf<Ts>}}},
                                 RandomSource::kSeed),
   ...);
  (registry.add<GammaKernel<Ts>>("StatelessRandomGammaV3",
                                 {{"dtype", {kDataTypeOf<Ts>}}},
                                 RandomSource::kKey),
   ...);
}

}  // namespace

void register_random_gamma_kernels(KernelRegistry& registry) {
  add_gammas<Half, float, double>(registry);
}

}  // namespace tagflow::devices
