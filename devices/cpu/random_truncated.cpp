// ParameterizedTruncatedNormal.
#include <cmath>
#include <limits>
#include <utility>

#include "devices/cpu/random_samples.h"

namespace tagflow::devices {

namespace {

// Samples between bounds, by the proposals of Robert: "Simulation of truncated
// normal variables" (Statistics and Computing 5, 1995), of which one in three
// or more is taken whatever the bounds are. Everything is in standard
// deviations from the mean; bounds above the mean or below it are mirrored, so
// that [low_, high_] reaches beyond 0 or begins there.
class TruncatedSampler {
 public:
  // REQUIRES: mean is finite, deviation > 0, low < high, and one is finite.
  TruncatedSampler(double mean, double deviation, double low, double high)
      : mean_(mean), deviation_(deviation) {
    low_ = (low - mean) / deviation;
    high_ = (high - mean) / deviation;
    if (high_ < 0 || low_ == -kInfinity) {
      std::swap(low_, high_);
      low_ = -low_;
      high_ = -high_;
      std::swap(low, high);
      deviation_ = -deviation;
    }
    start_ = low;
    // Their squares are finite, and the bound of what is cut off so far away
    // from the mean is all that can be drawn.
    low_ = std::clamp(low_, -1e150, 1e150);
    width_ = std::max(high_ - low_, 0.0);
    const double root = std::sqrt(low_ * low_ + 4);
    rate_ = (low_ + root) / 2;
    // rate_ - low_, which have the same leading digits far away.
    excess_ = low_ > 0 ? 2 / (root + low_) : (root - low_) / 2;
    const double widest =
        2 / (low_ + root) * std::exp(0.5 - low_ * excess_ / 2);
    if (low_ < -kFarOut && high_ >= 0) {
      proposal_ = Proposal::kNormal;
    } else if (high_ > kFarOut && low_ <= 0) {
      proposal_ = Proposal::kNormal;
    } else if (width_ < widest) {
      proposal_ = Proposal::kUniform;
    }
  }

  double draw(const Philox& stream, uint64_t number) const {
    Philox own = stream.skipped(kBlocksOfSample * number);
    if (proposal_ == Proposal::kNormal) return draw_normal(own);
    BackwardUnits units(own);
    // Counted from the bound, where differences are exact.
    const double offset = proposal_ == Proposal::kUniform
                              ? draw_uniform(units)
                              : draw_exponential(units);
    return start_ + deviation_ * offset;
  }

 private:
  enum class Proposal : uint8_t { kNormal, kUniform, kExponential };
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Beyond so many deviations on one side a normal number mostly fits.
  static constexpr double kFarOut = 1.3;

  double draw_normal(Philox& own) const {
    BackwardNormals normals(own);
    while (true) {
      const double x = normals.next();
      if (x >= low_ && x <= high_) return mean_ + deviation_ * x;
    }
  }
  double draw_uniform(BackwardUnits& units) const {
    // The density is highest where it is nearest to 0.
    const double top = low_ < 0 ? 0 : low_;
    while (true) {
      const double offset = units.next() * width_;
      const double x = low_ + offset;
      const double exponent =
          top == low_ ? -offset * (low_ + offset / 2) : -x * x / 2;
      if (units.next() <= std::exp(exponent)) return offset;
    }
  }
  double draw_exponential(BackwardUnits& units) const {
    while (true) {
      // 1 - u is never 0.
      const double offset = -std::log1p(-units.next()) / rate_;
      const double miss = offset - excess_;
      if (units.next() <= std::exp(-miss * miss / 2) && offset <= width_)
        return offset;
    }
  }

  double mean_, deviation_;
  double low_, high_;
  double start_;  // the bound that low_ stands for
  double width_, rate_, excess_;
  Proposal proposal_ = Proposal::kExponential;
};

// As often as the output has rows, or once for all of them.
template <class T>
class RowValues {
 public:
  explicit RowValues(const Tensor& tensor)
      : values_(tensor.flat<T>()), single_(values_.size() == 1) {}
  double at(int64_t row) const {
    return double(values_[single_ ? 0 : size_t(row)]);
  }

 private:
  std::span<const T> values_;
  bool single_;
};

constexpr const char* kParameters[] = {"means", "stdevs", "minvals", "maxvals"};

template <class T>
class TruncatedKernel final : public RandomKernel {
 public:
  TruncatedKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, 100), source_(source) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Shape shape, random_shape(context));
    if (shape.rank() == 0)
      return context.fail("shape must have an element at least");
    const int64_t rows = shape.dim(0);
    for (int i = 1; i <= 4; ++i) {
      const Tensor& values = context.input(i);
      if (values.rank() > 1 ||
          (values.num_elements() != 1 && values.num_elements() != rows))
        return context.fail("{} must be a scalar, or a vector of {}, got {}",
                            kParameters[i - 1], rows, values.describe());
    }
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    const Rows values(context);
    for (int64_t row = 0; row < rows; ++row)
      TAGFLOW_RETURN_IF_ERROR(check(context, values, row));
    fill(context, values, stream, output->num_elements() / rows,
         output->mutable_flat<T>());
    return {};
  }

 private:
  struct Rows {
    explicit Rows(const KernelContext& context)
        : means(context.input(1)),
          deviations(context.input(2)),
          lows(context.input(3)),
          highs(context.input(4)) {}
    RowValues<T> means, deviations, lows, highs;
  };

  static Status check(const KernelContext& context, const Rows& values,
                      int64_t row) {
    const double mean = values.means.at(row), low = values.lows.at(row);
    const double deviation = values.deviations.at(row);
    const double high = values.highs.at(row);
    if (!std::isfinite(mean))
      return context.fail("means must be finite, row {} has {}", row, mean);
    if (!(deviation > 0) || !std::isfinite(deviation))
      return context.fail("stdevs must be positive, row {} has {}", row,
                          deviation);
    if (!(low < high))
      return context.fail(
          "minvals must be less than maxvals, row {} has {} and {}", row, low,
          high);
    if (!std::isfinite(low) && !std::isfinite(high))
      return context.fail("one bound must be finite, row {} has {} and {}", row,
                          low, high);
    return {};
  }

  void fill(const KernelContext& context, const Rows& values,
            const Philox& stream, int64_t row_size,
            std::span<T> elements) const {
    context.parallel_for(
        int64_t(elements.size()), nanoseconds(),
        [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end;) {
            const int64_t row = at / row_size;
            const double low = values.lows.at(row);
            const double high = values.highs.at(row);
            const TruncatedSampler sampler(
                values.means.at(row), values.deviations.at(row), low, high);
            const int64_t last = std::min(end, (row + 1) * row_size);
            for (; at < last; ++at)
              elements[size_t(at)] =
                  T(std::clamp(sampler.draw(stream, uint64_t(at)), low, high));
          }
        });
  }

  RandomSource source_;
};

template <class... Ts>
void add_truncated(KernelRegistry& registry) {
  (add_random<TruncatedKernel<Ts>>(registry, "ParameterizedTruncatedNormal",
                                   RandomSource::kNode,
                                   {{"dtype", {kDataTypeOf<Ts>}}}),
   ...);
}

}  // namespace

void register_random_truncated_kernels(KernelRegistry& registry) {
  add_truncated<Half, BFloat16, float, double>(registry);
}

}  // namespace tagflow::devices
