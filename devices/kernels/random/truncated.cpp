// ParameterizedTruncatedNormal and its stateless form.
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "devices/broadcast.h"
#include "devices/kernels/random/samples.h"

namespace tagflow::devices {

namespace {

// Samples between bounds, by the proposals of Robert: "Simulation of truncated
// normal variables" (Statistics and Computing 5, 1995). It accepts at least one
// proposal in three for any bounds. Everything is in standard deviations from
// the mean; bounds above the mean or below it are mirrored, so that [low_,
// high_] reaches beyond 0 or begins there.
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
    // This keeps their squares finite. So far away from the mean, only the
    // bound itself can be drawn.
    low_ = std::clamp(low_, -1e150, 1e150);
    width_ = std::max(high_ - low_, 0.0);
    const double root = std::sqrt(low_ * low_ + 4);
    rate_ = (low_ + root) / 2;
    // rate_ - low_, which have equal leading digits far away.
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
    // Relative to the bound, where differences are exact.
    const double offset = proposal_ == Proposal::kUniform
                              ? draw_uniform(units)
                              : draw_exponential(units);
    return start_ + deviation_ * offset;
  }

 private:
  enum class Proposal : uint8_t { kNormal, kUniform, kExponential };
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Beyond so many deviations on one side most normal numbers are accepted.
  static constexpr double kFarOut = 1.3;

  double draw_normal(Philox& own) const {
    BackwardNormals normals(own);
    while (true) {
      const double x = normals.next();
      if (x >= low_ && x <= high_) return mean_ + deviation_ * x;
    }
  }
  double draw_uniform(BackwardUnits& units) const {
    // The density is highest at the point nearest to 0.
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

// One for each row of the output, or one for all of them.
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

// The same proposals, in TensorFlow's order: each operation in the type of the
// output, on a block at a time, so that the bits agree. Bounds are compared
// with the mean itself, and not mirrored if the mean is between them.
template <class T>
class BlockSampler {
 public:
  // REQUIRES: deviation > 0, low < high, and one is finite.
  BlockSampler(T mean, T deviation, T low, T high) : mean_(mean) {
    if ((std::isinf(double(low)) && low < T(0)) || high < mean) {
      std::swap(low, high);
      deviation = -deviation;
    }
    deviation_ = deviation;
    low_ = (low - mean) / deviation;
    high_ = (high - mean) / deviation;
    root_ = Eigen::numext::sqrt(T(low_ * low_ + T(4)));
    const T cutoff =
        T(2) * Eigen::numext::exp(T(T(0.5) + (low_ * (low_ - root_)) / T(4))) /
        (low_ + root_);
    const T far_out = T(1.3);
    width_ = high_ - low_;
    if ((low_ < -far_out && high_ >= T(0)) ||
        (high_ > far_out && low_ <= T(0))) {
      proposal_ = Proposal::kNormal;
    } else if (width_ < cutoff) {
      proposal_ = Proposal::kUniform;
    }
  }

  // Takes blocks of the stream until `count` samples are stored, `stride`
  // apart. The rest of the last block is not used.
  void draw(Philox& stream, int64_t count, T* samples, int64_t stride) const {
    int tries = 0;
    for (int64_t done = 0; done < count;) {
      const Tries block = try_block(stream);
      for (int i = 0; i < block.count && done < count; ++i) {
        if (!block.is_taken[i] && ++tries < kMostTries) continue;
        samples[done++ * stride] = block.z[i] * deviation_ + mean_;
        tries = 0;
      }
    }
  }

 private:
  enum class Proposal : uint8_t { kNormal, kUniform, kExponential };
  static constexpr int kGroup = kElementsOfBlock<T>;
  // If so many tries are rejected, the last one is accepted.
  static constexpr int kMostTries = 1000;

  struct Tries {
    int count = kGroup;
    T z[kGroup];
    bool is_taken[kGroup];
  };
  Tries try_block(Philox& stream) const {
    Tries tries;
    const Philox::Block block = stream.next();
    switch (proposal_) {
      case Proposal::kNormal: {
        NormalReal<T> normals[kGroup];
        normals_of_block<T>(block, normals);
        for (int i = 0; i < kGroup; ++i) {
          tries.z[i] = T(normals[i]);
          tries.is_taken[i] = tries.z[i] >= low_ && tries.z[i] <= high_;
        }
        break;
      }
      case Proposal::kUniform: {
        const T top = low_ < T(0) ? T(0) : T(low_ * low_);
        const Philox::Block chances = stream.next();
        for (int i = 0; i < kGroup; ++i) {
          const T z = unit_of_block<T>(block, i) * width_ + low_;
          const T bound = Eigen::numext::exp(T((top - z * z) / T(2)));
          tries.z[i] = z;
          tries.is_taken[i] = unit_of_block<T>(chances, i) <= bound;
        }
        break;
      }
      case Proposal::kExponential: {
        const T rate = (low_ + root_) / T(2);
        tries.count = kGroup / 2;
        for (int i = 0; i < tries.count; ++i) {
          const T z =
              -Eigen::numext::log(unit_of_block<T>(block, 2 * i)) / rate + low_;
          const T x = low_ < rate ? T(rate - z) : T(low_ - rate);
          const T bound = Eigen::numext::exp(T(-x * x / T(2)));
          tries.z[i] = z;
          tries.is_taken[i] =
              unit_of_block<T>(block, 2 * i + 1) <= bound && z < high_;
        }
        break;
      }
    }
    return tries;
  }

  T mean_, deviation_;
  T low_, high_, width_;
  T root_;
  Proposal proposal_ = Proposal::kExponential;
};

template <class T>
class SeededTruncatedKernel final : public RandomKernel {
 public:
  SeededTruncatedKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, 100), source_(source) {}

  Status compute(KernelContext& context) const override {
    std::array<Shape, 4> shapes;
    for (int i = 0; i < 4; ++i)
      shapes[size_t(i)] = context.input(kFirst + i).shape();
    Result<Shape> all =
        broadcast_shapes({&shapes[0], &shapes[1], &shapes[2], &shapes[3]});
    if (!all.ok())
      return context.fail(
          "means, stddevs, minvals and maxvals do not broadcast: {}, {}, {} "
          "and {}",
          shapes[0].to_string(), shapes[1].to_string(), shapes[2].to_string(),
          shapes[3].to_string());
    TAGFLOW_ASSIGN(const SampleLayout layout,
                   sample_layout(context, source_, *all, "the parameters"));
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, layout.shape));
    if (output->num_elements() == 0) return {};
    const std::vector<std::array<T, 4>> rows = parameters_of(context, *all);
    for (size_t i = 0; i < rows.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(check(context, rows[i], i));
    // One stream for all, in order: the start of a sample depends on those
    // before it.
    Philox rest = stream;
    auto* samples = output->mutable_data<T>();
    const auto stride = int64_t(rows.size());
    for (const auto& [mean, deviation, low, high] : rows)
      BlockSampler<T>(mean, deviation, low, high)
          .draw(rest, layout.samples, samples++, stride);
    return {};
  }

 private:
  static constexpr int kFirst = 2;  // of the parameters

  static std::vector<std::array<T, 4>> parameters_of(
      const KernelContext& context, const Shape& shape) {
    std::vector<std::array<T, 4>> rows(size_t(shape.num_elements()));
    for (int i = 0; i < 4; ++i) {
      const Tensor& values = context.input(kFirst + i);
      const Shape own = values.shape();
      const BroadcastPlan plan(shape, {&own});
      size_t next = 0;
      plan.for_each_row(
          0, plan.rows(), [&](int64_t, const BroadcastPlan::Offsets& offsets) {
            const T* value = values.data<T>() + offsets[0];
            for (int64_t k = 0; k < plan.row_size(); ++k)
              rows[next++][size_t(i)] = value[plan.moves(0) ? k : 0];
          });
    }
    return rows;
  }

  static Status check(const KernelContext& context, const std::array<T, 4>& row,
                      size_t number) {
    const auto& [mean, deviation, low, high] = row;
    if (deviation > T(0) && low < high && std::isfinite(double(mean)) &&
        (std::isfinite(double(low)) || std::isfinite(double(high))))
      return {};
    return context.fail(
        "mean {}, deviation {} and bounds {} and {} are invalid (row {} of the "
        "parameters): the mean must be finite, the deviation positive, and the "
        "bounds must increase, with one of them finite",
        double(mean), double(deviation), double(low), double(high), number);
  }

  RandomSource source_;
};

template <class... Ts>
void add_seeded_truncated(KernelRegistry& registry) {
  (registry.add<SeededTruncatedKernel<Ts>>(
       "StatelessParameterizedTruncatedNormal", {{"dtype", {kDataTypeOf<Ts>}}},
       RandomSource::kSeed),
   ...);
}

template <class... Ts>
void add_truncated(KernelRegistry& registry) {
  (registry.add<TruncatedKernel<Ts>>("ParameterizedTruncatedNormal",
                                     {{"dtype", {kDataTypeOf<Ts>}}},
                                     RandomSource::kNode),
   ...);
}

}  // namespace

void register_random_truncated_kernels(KernelRegistry& registry) {
  add_truncated<Half, BFloat16, float, double>(registry);
  add_seeded_truncated<Half, float, double>(registry);
}

}  // namespace tagflow::devices
