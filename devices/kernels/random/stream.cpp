#include "devices/kernels/random/stream.h"

#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/random_key.h"

namespace tagflow::devices {

namespace {

// The numbers of algorithms in graphs.
constexpr int64_t kPhiloxAlgorithm = 1;
constexpr int64_t kThreefryAlgorithm = 2;
constexpr int64_t kAutoAlgorithm = 3;

Result<Philox> keyed_stream(const KernelContext& context, int first) {
  const Tensor& key = context.input(first);
  const Tensor& counter = context.input(first + 1);
  const Tensor& algorithm = context.input(first + 2);
  if (!algorithm.is_scalar())
    return context.fail("alg must be a scalar, got {}", algorithm.describe());
  TAGFLOW_RETURN_IF_ERROR(
      check_algorithm(context, algorithm.scalar_value<int32_t>()));
  if (key.rank() != 1 || key.dim(0) != 1)
    return context.fail("key must be of shape [1], got {}", key.describe());
  if (counter.rank() != 1 || counter.dim(0) < 2)
    return context.fail("counter must be a vector of at least 2, got {}",
                        counter.describe());
  const auto words = counter.flat<uint64_t>();
  return Philox(key.scalar_value<uint64_t>(), words[0], words[1]);
}

}  // namespace

Status check_algorithm(const KernelContext& context, int64_t number) {
  if (number == kPhiloxAlgorithm || number == kAutoAlgorithm) return {};
  if (number == kThreefryAlgorithm)
    return error(Code::kUnimplemented,
                 "[{}] ThreeFry (alg 2) is not supported on a CPU; use Philox "
                 "(alg 1, or 3 to let the device choose)",
                 context.node().op());
  return context.fail("alg must be 1, 2 or 3, is {}", number);
}

int source_inputs(RandomSource source) {
  switch (source) {
    case RandomSource::kNode:
      return 0;
    case RandomSource::kSeed:
      return 1;
    case RandomSource::kKey:
      return 3;
  }
  return 0;
}

Status check_seed(const KernelContext& context, int input) {
  const Tensor& seed = context.input(input);
  if (seed.rank() != 1 || seed.dim(0) != 2)
    return context.fail("seed must be of shape [2], got {}", seed.describe());
  return {};
}

Philox seeded_stream(const Tensor& seed) {
  constexpr uint64_t kScramblingKey = 0x02461e293ec8f720;
  Philox scrambler(kScramblingKey, uint64_t(index_at(seed, 0)),
                   uint64_t(index_at(seed, 1)));
  const Philox::Block words = scrambler.next();
  return Philox(words[0] | uint64_t{words[1]} << 32, 0,
                words[2] | uint64_t{words[3]} << 32);
}

Result<Philox> random_stream(const KernelContext& context, RandomSource source,
                             int first) {
  if (source == RandomSource::kKey) return keyed_stream(context, first);
  if (source == RandomSource::kNode) return random_key(context).stream();
  TAGFLOW_RETURN_IF_ERROR(check_seed(context, first));
  return seeded_stream(context.input(first));
}

Result<Shape> random_shape(const KernelContext& context, int input) {
  Shape::Dims dims;
  TAGFLOW_RETURN_IF_ERROR(index_vector(context, input, "shape", dims));
  Result<Shape> shape = Shape::make({dims.data(), dims.size()});
  if (!shape.ok())
    return std::move(shape).status().with_prefix(
        fmt::format("[{}] ", context.node().op()));
  return shape;
}

Result<SampleLayout> sample_layout(const KernelContext& context,
                                   RandomSource source, const Shape& parameters,
                                   std::string_view what) {
  TAGFLOW_ASSIGN(const Shape given, random_shape(context));
  if (source != RandomSource::kNode)
    return layout_of_output(context, given, parameters, what);
  SampleLayout layout{given, given.num_elements(), parameters.num_elements()};
  Shape::Dims dims(given.dims().begin(), given.dims().end());
  for (int64_t dim : parameters.dims()) dims.push_back(dim);
  Result<Shape> whole = Shape::make({dims.data(), dims.size()});
  if (!whole.ok())
    return std::move(whole).status().with_prefix(
        fmt::format("[{}] ", context.node().op()));
  layout.shape = std::move(whole).value();
  return layout;
}

Result<SampleLayout> layout_of_output(const KernelContext& context,
                                      const Shape& given,
                                      const Shape& parameters,
                                      std::string_view what) {
  SampleLayout layout{given, 0, parameters.num_elements()};
  const int before = given.rank() - parameters.rank();
  if (before < 0 || !std::ranges::equal(given.dims().subspan(size_t(before)),
                                        parameters.dims()))
    return context.fail("shape {} must end with that of {}, {}",
                        given.to_string(), what, parameters.to_string());
  layout.samples = 1;
  for (int i = 0; i < before; ++i) layout.samples *= given.dim(i);
  return layout;
}

double product_of(const Tensor& shape) {
  double product = 1;
  if (!is_integer(shape.dtype())) return product;
  for (int64_t i = 0; i < shape.num_elements(); ++i)
    product *= std::max(double(index_at(shape, i)), 0.0);
  return product;
}

RandomKernel::RandomKernel(const KernelInfo& info, double nanoseconds)
    : nanoseconds_(nanoseconds), may_be_expensive_(true) {
  const PartialShape& shape = info.node().output_shape(0);
  const int64_t count = shape.has_rank() ? shape.num_elements() : -1;
  if (count >= 0)
    may_be_expensive_ = double(count) * nanoseconds > kHeavyNanoseconds / 2;
}

double RandomKernel::cost(const KernelContext& context) const {
  return 1300 + nanoseconds_ * elements(context);
}

double RandomKernel::elements(const KernelContext& context) const {
  return product_of(context.input(0));
}

}  // namespace tagflow::devices
