// Windows over tensors of [batch, depth, height, width, channels]: the only
// form in which convolutions and pools are computed. Ops without a depth use a
// depth of 1; tensors with channels first are transposed on the way in and out.
#pragma once

#include <algorithm>
#include <array>

#include "devices/kernel.h"
#include "graph/ops/convolution_window.h"

namespace tagflow::devices {

using Spatial = std::array<int64_t, 3>;  // depth, height, width

struct Geometry {
  int64_t batch = 0;
  int64_t channels = 0;  // of the input
  Spatial in{1, 1, 1};   // input positions
  Spatial out{1, 1, 1};  // window positions
  Spatial size{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  Spatial pad{0, 0, 0};  // in front

  bool operator==(const Geometry&) const = default;
  int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return size[0] * size[1] * size[2]; }

  // Calls body(tap, input position) for the elements of the window at output
  // position `at` that are within the input, in order. Takes no time for the
  // others, since a file may request any number of them.
  template <class Body>
  void for_taps(int64_t at, Body&& body) const {
    const Taps z = taps_within(0, at / (out[1] * out[2]));
    const Taps y = taps_within(1, at / out[2] % out[1]);
    const Taps x = taps_within(2, at % out[2]);
    for (int64_t i = z.first; i < z.last; ++i)
      for (int64_t j = y.first; j < y.last; ++j) {
        const int64_t tap = (i * size[1] + j) * size[2];
        const int64_t row = ((z.origin + i * dilation[0]) * in[1] +
                             (y.origin + j * dilation[1])) *
                            in[2];
        for (int64_t l = x.first; l < x.last; ++l)
          body(tap + l, row + x.origin + l * dilation[2]);
      }
  }

 private:
  // The range [first, last) of a window's elements along one dimension that are
  // within the input; element i is at origin + i * dilation.
  struct Taps {
    int64_t origin, first, last;
  };
  Taps taps_within(size_t d, int64_t position) const {
    Taps taps;
    taps.origin = position * stride[d] - pad[d];
    taps.first =
        taps.origin >= 0 ? 0 : (-taps.origin + dilation[d] - 1) / dilation[d];
    const int64_t left = in[d] - taps.origin;  // elements to the end
    taps.last = left <= 0
                    ? 0
                    : std::min(size[d], (left + dilation[d] - 1) / dilation[d]);
    return taps;
  }
};

// The geometry of windows of the given spatial sizes over a tensor of shape
// `input`, in the attributes' data format. InvalidArgument if they do not
// fit or their product overflows. REQUIRES: input.rank() == window.rank
Result<Geometry> make_geometry(const KernelContext& context,
                               const graph::WindowAttrs& window,
                               const Shape& input, const Spatial& size);
// As make_geometry(), with the sizes of window.size.
Result<Geometry> make_pool_geometry(const KernelContext& context,
                                    const graph::WindowAttrs& window,
                                    const Shape& input);

// The shape of a tensor of so many positions, in the data format.
Result<Shape> make_shape(const graph::WindowAttrs& window, int64_t batch,
                         const Spatial& positions, int64_t channels);

// The elements with the channels last; shared if they are so already.
Result<Tensor> to_channels_last(const KernelContext& context,
                                const graph::WindowAttrs& window,
                                const Tensor& tensor);
// The reverse: copies channels-last elements into `out`, whose shape is in
// the data format.
void from_channels_last(const graph::WindowAttrs& window, const Tensor& last,
                        Tensor& out);

// The elements converted between floating types; shared if the type is the
// same.
Result<Tensor> convert(const KernelContext& context, const Tensor& tensor,
                       DataType dtype);

// Output 0 of the shape, from channels-last elements of any floating type or
// of the output's own.
Status set_output_from(KernelContext& context, const graph::WindowAttrs& window,
                       const Shape& shape, const Tensor& last);

}  // namespace tagflow::devices
