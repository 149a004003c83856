// Op functions: activations, softmax, cross entropies, biases.
#pragma once

#include <string>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

inline Output bias_add(const Scope& s, const Input& x, const Input& bias,
                       std::string data_format = "NHWC") {
  return s.op("BiasAdd", {x, bias}, {{"data_format", std::move(data_format)}});
}

#define TAGFLOW_UNARY(function, op_name)                   \
  inline Output function(const Scope& s, const Input& x) { \
    return s.op(op_name, {x});                             \
  }
TAGFLOW_UNARY(relu, "Relu")
TAGFLOW_UNARY(relu6, "Relu6")
TAGFLOW_UNARY(elu, "Elu")
TAGFLOW_UNARY(softplus, "Softplus")
TAGFLOW_UNARY(softmax, "Softmax")
TAGFLOW_UNARY(log_softmax, "LogSoftmax")
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

}  // namespace tagflow::graph::ops
