// Loops and checks that max pools and their gradients share.
#pragma once

#include <algorithm>
#include <limits>

#include "devices/kernels/convolution/geometry.h"

namespace tagflow::devices {

// The attributes of a pool; for the V2 ops sizes and strides are still empty.
Result<graph::WindowAttrs> pool_attrs(const KernelInfo& info);

// `window` with the sizes and strides of inputs `first` and `first` + 1, if
// the node has these inputs; checked.
Result<graph::WindowAttrs> complete_window(const KernelContext& context,
                                           graph::WindowAttrs window,
                                           int first);

// Unimplemented if the window spans or strides over the batch, or over the
// channels unless `over_channels`; InvalidArgument if an explicit padding
// is as large as the window.
Status check_pool_window(const KernelContext& context,
                         const graph::WindowAttrs& window, bool over_channels);

// The largest element of each channel under a window, and its position.
template <class T, class Index>
struct Largest {
  explicit Largest(int64_t channels)
      : values(size_t(channels)), positions(size_t(channels)) {}

  // Searches the window at `at` of one image. Of equal elements the first one
  // wins; a NaN wins only if it comes first. Positions are -1 if the
  // window is empty. REQUIRES: an Index can hold every position.
  void find(const Geometry& g, const T* image, int64_t at) {
    T* __restrict const best = values.data();
    Index* __restrict const where = positions.data();
    std::fill_n(where, g.channels, Index(-1));
    bool is_first = true;
    g.for_taps(at, [&](int64_t, int64_t in) {
      const T* const row = image + in * g.channels;
      if (is_first) {
        std::copy_n(row, g.channels, best);
        std::fill_n(where, g.channels, Index(in));
        is_first = false;
        return;
      }
      for (int64_t c = 0; c < g.channels; ++c) {
        const bool is_larger = row[c] > best[c];
        where[c] = is_larger ? Index(in) : where[c];
        best[c] = is_larger ? row[c] : best[c];
      }
    });
  }

  std::vector<T> values;
  std::vector<Index> positions;
};

// Calls body(Index()) with the smallest type that holds positions of an image:
// loops over channels are faster with smaller types.
template <class Body>
void with_position_type(const Geometry& g, Body&& body) {
  if (g.in_positions() <= std::numeric_limits<int32_t>::max())
    body(int32_t());
  else
    body(int64_t());
}

// Estimated nanoseconds of a pool over these elements.
inline double pool_cost(const Tensor& in, const graph::WindowAttrs& window) {
  double taps = 1;
  for (int64_t size : window.size) taps *= double(size);
  for (int64_t stride : window.stride) taps /= double(stride);
  return 200 + double(in.num_elements()) * std::max(1.0, taps) * 0.5;
}

}  // namespace tagflow::devices
