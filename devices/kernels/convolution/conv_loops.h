// Convolutions and their gradients as matrix products.
//
// The elements under the window at one output position, over all taps and
// channels, make one row of a matrix of patches. Patches times the filter, a
// matrix of [taps * channels, output channels], is the convolution; it is
// done in blocks of positions so that the patches stay in the cache.
#pragma once

#include "devices/kernels/convolution/geometry.h"

namespace tagflow::devices {

// With groups, the input's and the output's channels are divided into as many
// parts, and part i of the output depends only on part i of the input.
struct Convolution {
  Geometry geometry;
  int64_t groups = 1;
  int64_t out_channels = 0;

  bool operator==(const Convolution&) const = default;
  int64_t group_in() const { return geometry.channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  // Rows of the filter as a matrix.
  int64_t patch() const { return geometry.taps() * group_in(); }
  // The total number of multiplications.
  double work() const {
    return double(geometry.batch) * double(geometry.out_positions()) *
           double(patch()) * double(out_channels);
  }
};

// Elements are channels-last, of type W: float, double, or int32_t (forward and
// input gradient only). ResourceExhausted if there is no memory for patches.
// REQUIRES: no size is 0.
template <class W>
Status convolve(const KernelContext& context, const Convolution& conv,
                const W* in, const W* filter, W* out);
// The gradient with respect to the input, from that of the output.
template <class W>
Status convolve_to_input(const KernelContext& context, const Convolution& conv,
                         const W* filter, const W* out_grad, W* in_grad);
// The gradient with respect to the filter.
template <class W>
Status convolve_to_filter(const KernelContext& context, const Convolution& conv,
                          const W* in, const W* out_grad, W* filter_grad);

}  // namespace tagflow::devices
