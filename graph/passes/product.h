// Products: convolutions and matrix products with constant weights.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/node.h"
#include "graph/ops/convolution_window.h"

namespace tagflow::graph {

// Products with smaller weights are not worth optimizing.
inline constexpr int64_t kLeastWeights = 1024;  // elements

struct Product {
  int rank = 2;          // of the result
  int64_t channels = 0;  // of the result
  bool first = false;    // the channel dimension precedes the positions
  // Element i of the weights contributes to channel i / stride % channels.
  int64_t stride = 1;
  std::optional<WindowAttrs> window;  // of a convolution
};

// The product that the node computes, if its input 1 is a Const of weights with
// a suitable shape: Conv2D, DepthwiseConv2dNative, MatMul, and BatchMatMulV2 by
// one matrix for the whole batch. The weights of a _PackedMatMul need not be a
// Const.
std::optional<Product> product_of(const Node& node);

}  // namespace tagflow::graph
