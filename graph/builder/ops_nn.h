// Op functions: dense products, activations, losses, convolution, random.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

struct MatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
};
inline Output matmul(const Scope& s, const Input& a, const Input& b,
                     MatMulAttrs m = {}) {
  return s.op("MatMul", {a, b},
              {{"transpose_a", m.transpose_a}, {"transpose_b", m.transpose_b}});
}
struct BatchMatMulAttrs {
  bool adj_x = false;
  bool adj_y = false;
};
inline Output batch_matmul(const Scope& s, const Input& x, const Input& y,
                           BatchMatMulAttrs m = {}) {
  return s.op("BatchMatMulV2", {x, y},
              {{"adj_x", m.adj_x}, {"adj_y", m.adj_y}});
}
inline Output bias_add(const Scope& s, const Input& x, const Input& bias,
                       std::string data_format = "NHWC") {
  return s.op("BiasAdd", {x, bias}, {{"data_format", std::move(data_format)}});
}

#define TAGFLOW_UNARY(function, op_name)                   \
  inline Output function(const Scope& s, const Input& x) { \
    return s.op(op_name, {x});                             \
  }
TAGFLOW_UNARY(sigmoid, "Sigmoid")
TAGFLOW_UNARY(tanh, "Tanh")
TAGFLOW_UNARY(relu, "Relu")
TAGFLOW_UNARY(relu6, "Relu6")
TAGFLOW_UNARY(elu, "Elu")
TAGFLOW_UNARY(softplus, "Softplus")
TAGFLOW_UNARY(softmax, "Softmax")
TAGFLOW_UNARY(log_softmax, "LogSoftmax")
TAGFLOW_UNARY(l2_loss, "L2Loss")
#undef TAGFLOW_UNARY

inline Output leaky_relu(const Scope& s, const Input& x, float alpha = 0.2f) {
  return s.op("LeakyRelu", {x}, {{"alpha", alpha}});
}

struct CrossEntropy {
  Output loss, backprop;
};
inline CrossEntropy softmax_cross_entropy(const Scope& s, const Input& logits,
                                          const Input& labels) {
  const OpResult result =
      s.op("SoftmaxCrossEntropyWithLogits", {logits, labels});
  return {result[0], result[1]};
}
inline CrossEntropy sparse_softmax_cross_entropy(const Scope& s,
                                                 const Input& logits,
                                                 const Input& labels) {
  const OpResult result =
      s.op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
  return {result[0], result[1]};
}

// For images in NHWC; strides and windows have four entries.
inline Output conv2d(const Scope& s, const Input& x, const Input& filter,
                     std::vector<int64_t> strides, std::string padding) {
  return s.op(
      "Conv2D", {x, filter},
      {{"strides", std::move(strides)}, {"padding", std::move(padding)}});
}
inline Output max_pool(const Scope& s, const Input& x,
                       std::vector<int64_t> ksize, std::vector<int64_t> strides,
                       std::string padding) {
  return s.op("MaxPool", {x},
              {{"ksize", std::move(ksize)},
               {"strides", std::move(strides)},
               {"padding", std::move(padding)}});
}
inline Output avg_pool(const Scope& s, const Input& x,
                       std::vector<int64_t> ksize, std::vector<int64_t> strides,
                       std::string padding) {
  return s.op("AvgPool", {x},
              {{"ksize", std::move(ksize)},
               {"strides", std::move(strides)},
               {"padding", std::move(padding)}});
}

// If both seeds are 0, the session chooses.
struct Seeds {
  int64_t seed = 0;
  int64_t seed2 = 0;
};
inline Output random_uniform(const Scope& s, const Input& shape, DataType dtype,
                             Seeds a = {}) {
  return s.op("RandomUniform", {shape},
              {{"dtype", dtype}, {"seed", a.seed}, {"seed2", a.seed2}});
}
inline Output random_normal(const Scope& s, const Input& shape, DataType dtype,
                            Seeds a = {}) {
  return s.op("RandomStandardNormal", {shape},
              {{"dtype", dtype}, {"seed", a.seed}, {"seed2", a.seed2}});
}

}  // namespace tagflow::graph::ops
