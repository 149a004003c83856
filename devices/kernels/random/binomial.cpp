// StatelessRandomBinomial.
#include <cmath>

#include "devices/broadcast.h"
#include "devices/kernels/random/samples.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// The difference between log(k!) and Stirling's formula for k + 1.
double stirling_rest(double k) {
  static constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092,
                                      0.0276779256849983,  0.02079067210376509,
                                      0.0166446911898211,  0.0138761288230707,
                                      0.0118967099458917,  0.0104112652619720,
                                      0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kFirst[size_t(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// The number of successes among `count`, each with a probability of at most a
// half. Small numbers are found by adding up the failures between successes;
// large ones by Hormann: "The generation of binomial random variates" (Journal
// of Statistical Computation and Simulation 46, 1993), BTRS, whose names are
// used here.
class SuccessSampler {
 public:
  SuccessSampler(double count, double chance, bool many)
      : count_(count), chance_(chance), many_(many) {}

  double draw(const Philox& stream, uint64_t number) const {
    Philox own = stream.skipped((many_ ? kBlocksOfSample : 42) * number);
    BackwardUnits units(own);
    return many_ ? draw_many(units) : draw_few(units);
  }

 private:
  double draw_few(BackwardUnits& units) const {
    const double log_failure = std::log1p(-chance_);
    double tried = 0;
    for (int successes = 0;; ++successes) {
      tried += std::ceil(std::log(units.next()) / log_failure);
      // Also false for NaN.
      if (!(tried <= count_)) return successes;
    }
  }
  double draw_many(BackwardUnits& units) const {
    const double spq = std::sqrt(count_ * chance_ * (1 - chance_));
    const double b = 1.15 + 2.53 * spq;
    const double a = -0.0873 + 0.0248 * b + 0.01 * chance_;
    const double c = count_ * chance_ + 0.5;
    const double v_r = 0.92 - 4.2 / b;
    const double r = chance_ / (1 - chance_);
    const double alpha = (2.83 + 5.1 / b) * spq;
    const double m = std::floor((count_ + 1) * chance_);
    while (true) {
      double u = units.next();
      double v = units.next();
      u -= 0.5;
      const double us = 0.5 - std::abs(u);
      const double k = std::floor((2 * a / us + b) * u + c);
      if (us >= 0.07 && v <= v_r) return k;
      if (!(k >= 0 && k <= count_)) continue;
      v = std::log(v * alpha / (a / (us * us) + b));
      const double bound =
          (m + 0.5) * std::log((m + 1) / (r * (count_ - m + 1))) +
          (count_ + 1) * std::log((count_ - m + 1) / (count_ - k + 1)) +
          (k + 0.5) * std::log(r * (count_ - k + 1) / (k + 1)) +
          stirling_rest(m) + stirling_rest(count_ - m) - stirling_rest(k) -
          stirling_rest(count_ - k);
      if (v <= bound) return k;
    }
  }

  double count_;
  double chance_;
  bool many_;
};

// Compares and subtracts in the type of the parameters, which affects the
// numbers drawn.
template <class P>
class BinomialSampler {
 public:
  BinomialSampler(P count, P chance)
      : count_(double(count)),
        fixed_(true),
        inverted_(chance > P(0.5)),
        successes_(0, 0, false) {
    if (count_ <= 0 || chance <= P(0)) return;
    if (chance >= P(1) || chance != chance) {
      fixed_value_ = chance >= P(1) ? count_ : double(chance);
      return;
    }
    fixed_ = false;
    const P less = inverted_ ? P(P(1) - chance) : chance;
    successes_ = SuccessSampler(count_, double(less), count * less >= P(10));
  }

  double draw(const Philox& stream, uint64_t number) const {
    if (fixed_) return fixed_value_;
    const double successes = successes_.draw(stream, number);
    return inverted_ ? count_ - successes : successes;
  }

 private:
  double count_;
  bool fixed_;
  double fixed_value_ = 0;
  bool inverted_;
  SuccessSampler successes_;
};

template <class P>
struct Trials {
  P count;
  P chance;
};

// The parameters, broadcast.
template <class P>
std::vector<Trials<P>> trials_of(const Shape& shape, const Tensor& counts,
                                 const Tensor& chances) {
  std::vector<Trials<P>> trials;
  trials.reserve(size_t(shape.num_elements()));
  const Shape count_shape = counts.shape(), chance_shape = chances.shape();
  const BroadcastPlan plan(shape, {&count_shape, &chance_shape});
  plan.for_each_row(
      0, plan.rows(), [&](int64_t, const BroadcastPlan::Offsets& offsets) {
        const P* count = counts.data<P>() + offsets[0];
        const P* chance = chances.data<P>() + offsets[1];
        for (int64_t i = 0; i < plan.row_size(); ++i)
          trials.push_back(
              {count[plan.moves(0) ? i : 0], chance[plan.moves(1) ? i : 0]});
      });
  return trials;
}

template <class P, class T>
Status draw_of_types(const KernelContext& context, const SampleLayout& layout,
                     const Philox& stream, int first, double nanoseconds,
                     Tensor& output) {
  TAGFLOW_ASSIGN(const Shape shape, binomial_shape(context, first));
  const auto trials =
      trials_of<P>(shape, context.input(first), context.input(first + 1));
  for (const Trials<P>& trial : trials) {
    const auto count = double(trial.count);
    if (!std::isfinite(count))
      return context.fail("counts must be finite, one is {}", count);
    if constexpr (std::is_integral_v<T>) {
      // A sample may be as large as its count.
      if (count > highest_sample<T>())
        return context.fail("a count of {} is beyond {}", count,
                            dtype_name(kDataTypeOf<T>));
      if (std::isnan(double(trial.chance)))
        return context.fail("probs must be numbers, one is nan");
    }
  }
  draw_samples(context, layout, stream, nanoseconds, output.mutable_data<T>(),
               [&](int64_t i) {
                 const Trials<P>& trial = trials[size_t(i)];
                 return BinomialSampler<P>(trial.count, trial.chance);
               });
  return {};
}

constexpr std::string_view kBinomialParameters = "counts and probs";

class BinomialKernel final : public RandomKernel {
 public:
  BinomialKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, kBinomialNanoseconds), source_(source) {}

  Status compute(KernelContext& context) const override {
    constexpr int kCounts = 2;
    TAGFLOW_ASSIGN(const Shape both, binomial_shape(context, kCounts));
    TAGFLOW_ASSIGN(const SampleLayout layout,
                   sample_layout(context, source_, both, kBinomialParameters));
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    return draw_binomial(context, layout, stream, kCounts, nanoseconds());
  }

 private:
  RandomSource source_;
};

}  // namespace

Result<Shape> binomial_shape(const KernelContext& context, int first) {
  const Shape counts = context.input(first).shape();
  const Shape chances = context.input(first + 1).shape();
  Result<Shape> both = broadcast_shapes({&counts, &chances});
  if (both.ok()) return both;
  return context.fail("counts and probs do not broadcast: {} and {}",
                      counts.to_string(), chances.to_string());
}

Status draw_binomial(KernelContext& context, const SampleLayout& layout,
                     const Philox& stream, int first, double nanoseconds) {
  TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, layout.shape));
  if (output->num_elements() == 0) return {};
  Status status;
  const auto visit_samples = [&]<class P>(TypeTag<P>) {
    tagflow::detail::visit_among<Half, float, double, int32_t, int64_t>(
        output->dtype(), [&]<class T>(TypeTag<T>) {
          status = draw_of_types<P, T>(context, layout, stream, first,
                                       nanoseconds, *output);
        });
  };
  tagflow::detail::visit_among<Half, float, double>(
      context.input(first).dtype(), visit_samples);
  return status;
}

void register_random_binomial_kernels(KernelRegistry& registry) {
  registry.add<BinomialKernel>(
      "StatelessRandomBinomial",
      {{"T", {DataType::kHalf, DataType::kFloat, DataType::kDouble}}},
      RandomSource::kSeed);
}

}  // namespace tagflow::devices
