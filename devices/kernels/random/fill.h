// Private to devices/kernels/random/: kernels whose output is filled with
// independent numbers of one distribution.
#pragma once

#include <algorithm>

#include "devices/kernels/random/numbers.h"
#include "devices/kernels/random/stream.h"

namespace tagflow::devices {

// Fills an output with the shape in input 0. A Distribution has
//   using Element
//   kGroup        elements that are drawn at a time
//   kBlocks       blocks of the stream from the start of a group to the next
//   kNanoseconds  for an element
//   make()        creates one from the inputs from `first` on, or an error;
//                 called only if the output has elements
//   draw()        one group from a stream that is at its start
// So each group has its own part of the stream, regardless of the worker.
template <class Distribution>
void fill_random(const KernelContext& context, const Philox& stream,
                 const Distribution& distribution,
                 std::span<typename Distribution::Element> elements) {
  using Element = typename Distribution::Element;
  constexpr int64_t kGroup = Distribution::kGroup;
  const auto size = int64_t(elements.size());
  context.parallel_for(
      size / kGroup + (size % kGroup != 0 ? 1 : 0),
      Distribution::kNanoseconds * double(kGroup),
      [&](int64_t begin, int64_t end) {
        Philox at =
            stream.skipped(uint64_t(begin) * uint64_t(Distribution::kBlocks));
        const int64_t whole = std::min(end, size / kGroup);
        Element* to = elements.data() + begin * kGroup;
        for (int64_t group = begin; group < whole; ++group, to += kGroup) {
          distribution.draw(at, to);
          at.skip(uint64_t(Distribution::kBlocks));
        }
        if (whole == end) return;
        Element rest[kGroup];
        distribution.draw(at, rest);
        std::copy_n(rest, size - whole * kGroup, to);
      });
}

template <class Distribution>
class FillRandomKernel final : public RandomKernel {
 public:
  using Element = typename Distribution::Element;

  FillRandomKernel(const KernelInfo& info, RandomSource source)
      : RandomKernel(info, Distribution::kNanoseconds), source_(source) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Shape shape, random_shape(context));
    TAGFLOW_ASSIGN(const Philox stream, random_stream(context, source_, 1));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    TAGFLOW_ASSIGN(const Distribution distribution,
                   Distribution::make(context, 1 + source_inputs(source_)));
    fill_random(context, stream, distribution, output->mutable_flat<Element>());
    return {};
  }

 private:
  RandomSource source_;
};

template <class Distribution>
void add_fill(KernelRegistry& registry, std::string op, RandomSource source,
              const char* type_attr = "dtype") {
  registry.add<FillRandomKernel<Distribution>>(
      op, {{type_attr, {kDataTypeOf<typename Distribution::Element>}}}, source);
}

}  // namespace tagflow::devices
