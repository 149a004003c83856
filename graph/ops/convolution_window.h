// Window positions of convolutions and pools: the arithmetic shared by shape
// functions and kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

enum class Padding : uint8_t { kSame, kValid, kExplicit };

// A window along one dimension.
struct WindowDim {
  int64_t size = 1;                       // covered elements; 0: of a filter
  int64_t stride = 1;                     // step between positions
  int64_t dilation = 1;                   // distance of neighbouring elements
  int64_t pad_before = 0, pad_after = 0;  // for explicit padding
};

// The positions of a window.
struct Positions {
  int64_t count = 0;
  int64_t pad_before = 0;  // padding in front of the first element
};

// InvalidArgument if the size is negative, another number is not positive, or
// the window is so much larger than the padded input that the count would be
// negative. The message names no op. `input` >= 0.
Result<Positions> slide(const WindowDim& window, int64_t input,
                        Padding padding);
// The count for shape functions. As in TensorFlow, they are stricter than
// kernels: InvalidArgument also if the window is larger than the padded input,
// so that the count would be 0.
Result<int64_t> inferred_count(const WindowDim& window, int64_t input,
                               Padding padding);

// The attributes of a node that describe its windows, as far as it has them.
// Lists have one entry per dimension of the input, in its order.
struct WindowAttrs {
  int rank = 4;  // of the input: 4 or 5
  bool channels_first = false;
  Padding padding = Padding::kValid;
  std::vector<int64_t> size, stride, dilation;
  std::vector<int64_t> explicit_paddings;  // before and after, by dimension

  int spatial_count() const { return rank - 2; }
  int channel_dim() const { return channels_first ? 1 : rank - 1; }
  // The dimension of the input that is the i-th spatial one.
  int spatial_dim(int i) const { return channels_first ? i + 2 : i + 1; }
  // The window along a spatial dimension, its size as given or `filter_size`.
  WindowDim spatial(int i, int64_t filter_size) const;
  WindowDim spatial(int i) const {
    return spatial(i, size[size_t(spatial_dim(i))]);
  }
  // InvalidArgument unless lists have the right length and numbers are in
  // range. `size` and `stride` may be empty if they are inputs.
  Status check() const;
};

// Reads padding, explicit_paddings, strides, ksize, dilations, data_format
// and checks them; messages name the node. `rank` is the input's.
Result<WindowAttrs> window_attrs(const Node& node, int rank);

}  // namespace tagflow::graph
