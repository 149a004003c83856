// Loops and checks that max pools and their gradients share.
#pragma once

#include <algorithm>
#include <limits>

#include "devices/cpu/nn_geometry.h"

namespace tagflow::devices {

// The attributes of a pool; for the V2 ops sizes and strides are still empty.
Result<graph::WindowAttrs> pool_attrs(const KernelInfo& info);

// `window` with the sizes and strides that inputs `first` and `first` + 1
// hold, where the node has these inputs; checked.
Result<graph::WindowAttrs> complete_window(const KernelContext& context,
                                           graph::WindowAttrs window,
                                           int first);

// Unimplemented where the window spans or strides over the batch, or over the
// channels unless `over_channels`; InvalidArgument where an explicit padding
// is as large as the window.
Status check_pool_window(const KernelContext& context,
                         const graph::WindowAttrs& window, bool over_channels);

// Sets best[c] to the position in one image of the largest element of
// channel c under the window at `at`, the first one where they are equal; NaN
// is larger only where it comes first. -1 where the window is empty.
template <class T>
void find_largest(const Geometry& g, const T* image, int64_t at,
                  int64_t* best) {
  std::fill_n(best, g.channels, int64_t(-1));
  g.for_taps(at, [&](int64_t, int64_t in) {
    const T* row = image + in * g.channels;
    for (int64_t c = 0; c < g.channels; ++c)
      if (best[c] < 0 || row[c] > image[best[c] * g.channels + c]) best[c] = in;
  });
}

// Estimated nanoseconds of a pool over these elements.
inline double pool_cost(const Tensor& in, const graph::WindowAttrs& window) {
  double taps = 1;
  for (int64_t size : window.size) taps *= double(size);
  for (int64_t stride : window.stride) taps /= double(stride);
  return 200 + double(in.num_elements()) * std::max(1.0, taps) * 0.5;
}

}  // namespace tagflow::devices
