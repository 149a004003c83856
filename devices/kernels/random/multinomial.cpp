// Multinomial, StatelessMultinomial.
#include <cmath>
#include <limits>

#include "devices/kernels/random/numbers.h"
#include "devices/kernels/random/stream.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// The sums of the first 1, 2, ... unnormalised probabilities of a row. Logits
// that are not finite count as -infinity.
template <class T>
void add_up(std::span<const T> logits, double* sums) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const T logit : logits)
    if (std::isfinite(double(logit)))
      largest = std::max(largest, double(logit));
  double sum = 0;
  for (const T logit : logits) {
    if (std::isfinite(double(logit))) sum += std::exp(double(logit) - largest);
    *sums++ = sum;
  }
}

// Sample k of the output is the position of a uniform number, the k-th double
// of the stream, among the sums of its row. TensorFlow does the same if it does
// not divide the rows among threads. A row without a finite logit gives the
// number of classes.
class MultinomialKernel final : public RandomKernel {
 public:
  MultinomialKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, kSampleNanoseconds), source_(source) {}

  Status compute(KernelContext& context) const override {
    const Tensor& logits = context.input(0);
    if (logits.rank() != 2)
      return context.fail("logits must be a matrix, got {}", logits.describe());
    if (!context.input(1).is_scalar())
      return context.fail("num_samples must be a scalar, got {}",
                          context.input(1).describe());
    const int64_t samples = index_at(context.input(1), 0);
    if (samples < 0)
      return context.fail("num_samples must not be negative, is {}", samples);
    const int64_t rows = logits.dim(0), classes = logits.dim(1);
    if (classes == 0)
      return context.fail("there is no class in logits, {}", logits.describe());
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 2));
    if (classes > std::numeric_limits<int32_t>::max() ||
        !checked_multiply(rows, samples))
      return context.fail("{} samples of {} are too many", samples,
                          logits.describe());
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, {rows, samples}));
    if (output->num_elements() == 0) return {};
    TAGFLOW_ASSIGN(Tensor sums,
                   context.allocate_temp(DataType::kDouble, {rows, classes}));
    add_up_rows(context, logits, sums.mutable_data<double>());
    const double* all_sums = sums.data<double>();
    tagflow::detail::visit_among<int32_t, int64_t>(
        output->dtype(), [&]<class I>(TypeTag<I>) {
          I* to = output->mutable_data<I>();
          context.parallel_for(
              rows * samples, kSampleNanoseconds,
              [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                  const double* row = all_sums + k / samples * classes;
                  to[k] = I(pick(stream, k, {row, size_t(classes)}));
                }
              });
        });
    return {};
  }

  double cost(const KernelContext& context) const override {
    return RandomKernel::cost(context) +
           kClassNanoseconds * double(context.input(0).num_elements());
  }

 private:
  static constexpr double kSampleNanoseconds = 60;
  static constexpr double kClassNanoseconds = 8;

  double elements(const KernelContext& context) const override {
    const Tensor& logits = context.input(0);
    const Tensor& samples = context.input(1);
    if (logits.rank() == 0 || samples.num_elements() != 1) return 0;
    return double(logits.dim(0)) * std::max(double(index_at(samples, 0)), 0.0);
  }

  static void add_up_rows(const KernelContext& context, const Tensor& logits,
                          double* sums) {
    const int64_t classes = logits.dim(1);
    visit_floating(logits.dtype(), [&]<class T>(TypeTag<T>) {
      const T* from = logits.data<T>();
      context.parallel_for(logits.dim(0), kClassNanoseconds * double(classes),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t row = begin; row < end; ++row)
                               add_up<T>(
                                   {from + row * classes, size_t(classes)},
                                   sums + row * classes);
                           });
    });
  }

  static int64_t pick(const Philox& stream, int64_t number,
                      std::span<const double> sums) {
    const Philox::Block block = stream.skipped(uint64_t(number / 2)).next();
    const double wanted =
        unit_of_block<double>(block, int(number % 2)) * sums.back();
    return std::ranges::upper_bound(sums, wanted) - sums.begin();
  }

  RandomSource source_;
};

}  // namespace

void register_random_multinomial_kernels(KernelRegistry& registry) {
  const TypeLimits types = {{"T",
                             {DataType::kHalf, DataType::kBFloat16,
                              DataType::kFloat, DataType::kDouble}}};
  registry.add<MultinomialKernel>("Multinomial", types, RandomSource::kNode);
  registry.add<MultinomialKernel>("StatelessMultinomial", types,
                                  RandomSource::kSeed);
}

}  // namespace tagflow::devices
