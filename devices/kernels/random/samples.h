// Private to devices/kernels/random/: samples of distributions whose parameters
// are elements of a tensor. A sample consumes a variable number of random
// numbers.
#pragma once

#include <algorithm>
#include <limits>

#include "devices/kernels/random/numbers.h"
#include "devices/kernels/random/stream.h"
#include "graph/float16.h"

namespace tagflow::devices {

// Blocks of the stream from the start of one sample to that of the next.
inline constexpr uint64_t kBlocksOfSample = 256;

// The largest possible sample of the type.
template <class T>
double highest_sample() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  if constexpr (std::is_same_v<T, int64_t>) return 0x7ffffffffffffc00;
  return double(std::numeric_limits<T>::max());
}

// Sample number i * samples + j is element j of distribution i. Each range of a
// distribution calls `make_sampler(i)` once; its `draw(stream, number)` gives
// the same sample on any worker. REQUIRES: as many elements in `output` as the
// layout says.
template <class T, class MakeSampler>
void draw_samples(const KernelContext& context, const SampleLayout& layout,
                  const Philox& stream, double nanoseconds, T* output,
                  const MakeSampler& make_sampler) {
  const int64_t samples = layout.samples, parameters = layout.parameters;
  context.parallel_for(
      samples * parameters, nanoseconds, [&](int64_t begin, int64_t end) {
        for (int64_t number = begin; number < end;) {
          const int64_t parameter = number / samples;
          const auto sampler = make_sampler(parameter);
          const int64_t last = std::min(end, (parameter + 1) * samples);
          for (; number < last; ++number)
            output[(number - parameter * samples) * parameters + parameter] =
                T(sampler.draw(stream, uint64_t(number)));
        }
      });
}

}  // namespace tagflow::devices
