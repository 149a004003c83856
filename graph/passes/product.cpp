#include "graph/passes/product.h"

#include "graph/known_value.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

std::optional<Product> convolution_of(const Node& node, const Tensor& weights) {
  if (weights.rank() != 4 || weights.num_elements() == 0) return {};
  Result<WindowAttrs> window = window_attrs(node, 4);
  if (!window.ok()) return {};
  Product product;
  product.rank = 4;
  product.channels = weights.dim(3);
  if (node.op() == "DepthwiseConv2dNative") product.channels *= weights.dim(2);
  product.first = window->channels_first;
  product.window = std::move(window).value();
  return product;
}

}  // namespace

std::optional<Product> product_of(const Node& node) {
  const std::string& op = node.op();
  if (op == "_PackedMatMul") {
    const PartialShape weights = node.attr<PartialShape>("weights").value();
    if (!weights.has_rank() || weights.rank() != 2) return {};
    Product product;
    product.channels = weights.dim(is_set(node, "transpose_b") ? 0 : 1);
    return product;
  }
  const bool is_convolution = op == "Conv2D" || op == "DepthwiseConv2dNative";
  const bool is_batch = op == "BatchMatMulV2";
  if (!is_convolution && !is_batch && op != "MatMul") return {};
  const Tensor* weights = known_constant(node.inputs()[1]);
  if (weights == nullptr) return {};
  if (is_convolution) return convolution_of(node, *weights);
  if (weights->rank() != 2 || weights->num_elements() == 0) return {};
  const bool transposed = is_set(node, is_batch ? "adj_y" : "transpose_b");
  Product product;
  product.channels = weights->dim(transposed ? 0 : 1);
  product.stride = transposed ? weights->dim(1) : 1;
  if (!is_batch) return product;
  // An operand that is broadcast must not have more dimensions.
  const PartialShape& shape = node.output_shape(0);
  product.rank = shape.has_rank() ? shape.rank() : 2;
  return product;
}

}  // namespace tagflow::graph
