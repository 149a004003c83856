// Division of a convolution into parts, which workers share.
#pragma once

#include <vector>

#include "devices/kernels/convolution/packed_convolution.h"

namespace tagflow::devices {

// The unit of computation. Pieces of equal sizes use the same primitive.
struct ConvolutionPiece {
  int64_t images = 1, height = 1;  // of the input
  int64_t out_height = 1;
  int64_t pad_top = 0, pad_bottom = 0;

  auto operator<=>(const ConvolutionPiece&) const = default;
};

struct ConvolutionPart {
  ConvolutionPiece piece;
  int64_t in = 0;              // where its input begins, in elements
  int64_t begin = 0, end = 0;  // of the output
};

// Estimated nanoseconds on one thread.
double convolution_cost(const WeightLayout& layout, const Geometry& geometry);

// All parts, in the order of the output: Note [Parts of a convolution].
// REQUIRES: there are elements.
std::vector<ConvolutionPart> cut_convolution(const WeightLayout& layout,
                                             const Geometry& geometry);

}  // namespace tagflow::devices
