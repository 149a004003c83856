// Random generators, whose state is in variables: RngSkip, RngReadAndSkip, and
// the ops that draw from them: StatefulUniform, StatefulStandardNormalV2, ...
#include <algorithm>

#include "devices/kernels/random/distributions.h"
#include "devices/kernels/random/fill.h"
#include "devices/kernels/random/generator_state.h"
#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kPhilox = 1;
constexpr uint64_t kCountersPerNumber = 256;

class RngSkipKernel final : public UpdateKernel {
 public:
  explicit RngSkipKernel(const KernelInfo&) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, StateLock::Mode::kExclusive, claim);
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const int64_t algorithm,
                   index_scalar(context, 1, "algorithm"));
    if (algorithm != kPhilox)
      return context.fail("algorithm {} is unknown; 1 is Philox", algorithm);
    TAGFLOW_ASSIGN(const uint64_t delta, delta_of(context));
    TAGFLOW_ASSIGN(GeneratorState state, GeneratorState::of(context));
    if (context.num_outputs() > 0) {
      TAGFLOW_ASSIGN(Tensor * before,
                     context.allocate_output(0, {GeneratorState::kWords}));
      std::ranges::copy(state.words(), before->mutable_data<int64_t>());
    }
    return state.skip(context, delta);
  }

 private:
  static Result<uint64_t> delta_of(const KernelContext& context) {
    const Tensor& delta = context.input(2);
    if (!delta.is_scalar())
      return context.fail("delta must be a scalar, got {}", delta.describe());
    return delta.dtype() == DataType::kUInt64
               ? delta.scalar_value<uint64_t>()
               : uint64_t(delta.scalar_value<int64_t>());
  }
};

// Inputs: the variable, an algorithm, the shape of the output, parameters.
constexpr int kGeneratorShape = 2;
constexpr int kGeneratorParameters = 3;

class GeneratorKernel : public UpdateKernel {
 public:
  explicit GeneratorKernel(double nanoseconds) : nanoseconds_(nanoseconds) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, StateLock::Mode::kExclusive, claim);
  }
  double cost(const KernelContext& context) const override {
    return 1300 + nanoseconds_ * product_of(context.input(kGeneratorShape));
  }

 protected:
  double nanoseconds() const { return nanoseconds_; }
  // Draws output 0, and returns how many numbers it used.
  virtual Result<uint64_t> draw(KernelContext& context, const Shape& shape,
                                const Philox& stream) const = 0;

  Status update(KernelContext& context) const final {
    TAGFLOW_ASSIGN(const int64_t algorithm,
                   index_scalar(context, 1, "algorithm"));
    TAGFLOW_RETURN_IF_ERROR(check_algorithm(context, algorithm));
    TAGFLOW_ASSIGN(const Shape shape, random_shape(context, kGeneratorShape));
    TAGFLOW_ASSIGN(GeneratorState state, GeneratorState::of(context));
    TAGFLOW_ASSIGN(const uint64_t numbers,
                   draw(context, shape, state.stream()));
    return state.skip(context, numbers);
  }

 private:
  double nanoseconds_;
};

template <class Distribution>
class FillFromGenerator final : public GeneratorKernel {
 public:
  explicit FillFromGenerator(const KernelInfo&)
      : GeneratorKernel(Distribution::kNanoseconds) {}

 protected:
  Result<uint64_t> draw(KernelContext& context, const Shape& shape,
                        const Philox& stream) const override {
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return 0;
    TAGFLOW_ASSIGN(const Distribution distribution,
                   Distribution::make(context, kGeneratorParameters));
    fill_random(context, stream, distribution,
                output->mutable_flat<typename Distribution::Element>());
    return uint64_t(output->num_elements());
  }
};

class BinomialFromGenerator final : public GeneratorKernel {
 public:
  explicit BinomialFromGenerator(const KernelInfo&)
      : GeneratorKernel(kBinomialNanoseconds) {}

 protected:
  Result<uint64_t> draw(KernelContext& context, const Shape& shape,
                        const Philox& stream) const override {
    TAGFLOW_ASSIGN(const Shape both,
                   binomial_shape(context, kGeneratorParameters));
    TAGFLOW_ASSIGN(const SampleLayout layout,
                   layout_of_output(context, shape, both, "counts and probs"));
    TAGFLOW_RETURN_IF_ERROR(draw_binomial(context, layout, stream,
                                          kGeneratorParameters, nanoseconds()));
    // The amount that TensorFlow reserves, so that the state is the same
    // afterwards.
    constexpr uint64_t kOfFourSamples = 200;
    return uint64_t(layout.parameters) * kOfFourSamples *
           (uint64_t(layout.samples) + 3) / 4;
  }
};

template <template <class> class Distribution, class... Ts>
void add_generator(KernelRegistry& registry, const char* op) {
  (registry.add<FillFromGenerator<Distribution<Ts>>>(
       op, {{"dtype", {kDataTypeOf<Ts>}}}),
   ...);
}

}  // namespace

Result<GeneratorState> GeneratorState::of(const KernelContext& context) {
  TAGFLOW_ASSIGN(Variable * variable,
                 initialized_variable(context, 0, DataType::kInt64));
  const Tensor& value = variable->value();
  if (value.rank() != 1 || value.dim(0) < kWords)
    return context.fail(
        "the state of Philox is a vector of at least {} words, the value of {} "
        "is {}",
        kWords, variable->describe(), value.describe());
  return GeneratorState(variable);
}

std::span<const int64_t> GeneratorState::words() const {
  return variable_->value().flat<int64_t>().first(size_t(kWords));
}

Philox GeneratorState::stream() const {
  const auto all = words();
  return {uint64_t(all[2]), uint64_t(all[0]), uint64_t(all[1])};
}

Status GeneratorState::skip(const KernelContext& context, uint64_t numbers) {
  const Philox next = stream().skipped(numbers * kCountersPerNumber);
  TAGFLOW_ASSIGN(Tensor * changed, variable_->change(context));
  auto* words = changed->mutable_data<int64_t>();
  words[0] = int64_t(next.counter_low());
  words[1] = int64_t(next.counter_high());
  return {};
}

void register_generator_kernels(KernelRegistry& registry) {
  for (const char* op : {"RngSkip", "RngReadAndSkip"})
    registry.add<RngSkipKernel>(op);
  add_generator<UniformReal, Half, BFloat16, float, double>(registry,
                                                            "StatefulUniform");
  add_generator<StandardNormal, Half, BFloat16, float, double>(
      registry, "StatefulStandardNormalV2");
  add_generator<CutNormal, Half, BFloat16, float, double>(
      registry, "StatefulTruncatedNormal");
  add_generator<UniformInt, int32_t, int64_t>(registry, "StatefulUniformInt");
  add_generator<UniformFullInt, int32_t, int64_t, uint32_t, uint64_t>(
      registry, "StatefulUniformFullInt");
  registry.add<BinomialFromGenerator>(
      "StatefulRandomBinomial",
      {{"T", {DataType::kHalf, DataType::kFloat, DataType::kDouble}}});
}

}  // namespace tagflow::devices
