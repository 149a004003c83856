// Products: convolutions and matrix products by weights, as passes see them.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/ops/nn_window.h"

namespace tagflow::graph {

// Smaller weights are not worth more than a plain product.
inline constexpr int64_t kLeastWeights = 1024;  // elements

struct Product {
  int rank = 2;          // of the result
  int64_t channels = 0;  // of the result
  bool first = false;    // the channels come first among the positions
  // Element i of the weights makes channel i / stride % channels.
  int64_t stride = 1;
  std::optional<WindowAttrs> window;  // of a convolution
};

// What the node multiplies by, where its input 1 is a Const of weights of a
// fitting shape: Conv2D, DepthwiseConv2dNative, MatMul, and BatchMatMulV2 by
// one matrix for the whole batch. Of a _PackedMatMul the weights are no Const.
std::optional<Product> product_of(const Node& node);

}  // namespace tagflow::graph
