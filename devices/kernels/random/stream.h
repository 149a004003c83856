// Private to devices/kernels/random/: the streams of numbers that kernels draw
// from, and the layout of their samples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/philox.h"

namespace tagflow::devices {

// The source of an op's numbers, given by its inputs after the first one.
enum class RandomSource : uint8_t {
  kNode,  // none: devices/random_key.h
  kSeed,  // two integers, as StatelessRandomUniform has them
  kKey,   // a key, a counter and an algorithm, as StatelessRandomUniformV2
};

// The number of these inputs.
int source_inputs(RandomSource source);
// The stream given by the inputs from `first` on; an error if they are
// malformed, Unimplemented for an algorithm that exists in TensorFlow only.
Result<Philox> random_stream(const KernelContext& context, RandomSource source,
                             int first);
// The stream of two integers, scrambled: different seeds, different streams.
Philox seeded_stream(const Tensor& seed);
Status check_seed(const KernelContext& context, int input);

// InvalidArgument unless the number is that of an algorithm, Unimplemented
// if that exists in TensorFlow only.
Status check_algorithm(const KernelContext& context, int64_t number);

// The shape in an input that is a vector of dimensions.
Result<Shape> random_shape(const KernelContext& context, int input = 0);

// The order of samples of several distributions in an output: consecutive
// samples of one distribution are `parameters` elements apart.
struct SampleLayout {
  Shape shape;
  int64_t samples = 0;     // from each distribution
  int64_t parameters = 0;  // distributions
};
// For kNode, input 0 is the number of samples; else the shape of the output,
// which must end with that of the parameters. `what` is for the message.
Result<SampleLayout> sample_layout(const KernelContext& context,
                                   RandomSource source, const Shape& parameters,
                                   std::string_view what);
// The layout of an output of that shape.
Result<SampleLayout> layout_of_output(const KernelContext& context,
                                      const Shape& output,
                                      const Shape& parameters,
                                      std::string_view what);

// Draws binomial samples into output 0 with the numbers of the stream; input
// `first` has the counts, the next one the probabilities.
Status draw_binomial(KernelContext& context, const SampleLayout& layout,
                     const Philox& stream, int first, double nanoseconds);
// The broadcast shape of these two inputs.
Result<Shape> binomial_shape(const KernelContext& context, int first);
inline constexpr double kBinomialNanoseconds = 120;

// A kernel that takes so many nanoseconds for each element of output 0.
class RandomKernel : public Kernel {
 public:
  RandomKernel(const KernelInfo& info, double nanoseconds);

  double cost(const KernelContext& context) const override;
  bool may_be_expensive() const final { return may_be_expensive_; }

 protected:
  double nanoseconds() const { return nanoseconds_; }
  // The number of elements of output 0, from unchecked inputs: the product of
  // input 0, unless overridden.
  virtual double elements(const KernelContext& context) const;

 private:
  double nanoseconds_;
  bool may_be_expensive_;
};

// The product of a tensor of integers; 1 if it is of another type.
double product_of(const Tensor& shape);

}  // namespace tagflow::devices
