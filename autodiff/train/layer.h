// Layers: functions that get their variables from a VariableScope.
//
//   Output x = layers::conv2d(s, vars, images, {.filters = 32,
//                                               .activation = ops::relu});
//   x = layers::flatten(s, layers::max_pool(s, x));
//   const Output logits = layers::dense(s, vars, x, {.units = 10});
//
// Names are those of TensorFlow 1's tf.layers: "dense/kernel", "dense/bias".
// A layer without a name gets the first of "dense", "dense_1", ... that is
// free. Calls with the same name share variables if the scope has Reuse::kAuto.
// Variables have the floating-point type of the input. Kernels without an
// initializer use that of the scope; biases begin as 0. Recurrent layers are in
// graph/builder/rnn.h:
//
//   dynamic_rnn(s, vars, *lstm_cell({.units = 64}), x).outputs
//
// Thread-compatible, like the graph. The scope fails, and the result is
// invalid, if sizes are not positive or an input does not have the required
// dimensions.
#pragma once

#include <array>
#include <string>

#include "graph/builder/rnn_cell.h"
#include "graph/builder/variable_scope.h"

namespace tagflow::autodiff::layers {

using graph::Output;

struct DenseOptions {
  int64_t units = 0;
  graph::ActivationFn activation = {};  // null: none
  bool use_bias = true;
  graph::Initializer kernel_initializer = {};
  graph::Initializer bias_initializer = {};
  std::string name = {};  // "": "dense"
};
// activation(x kernel + bias): maps [..., inputs] to [..., units]. x has two or
// more dimensions, and the last one is known. Kernel: [inputs, units].
Output dense(const graph::Scope& s, const graph::VariableScope& vars,
             const Output& x, const DenseOptions& options);

struct Conv2dOptions {
  int64_t filters = 0;
  std::array<int64_t, 2> kernel_size = {3, 3};  // height, width
  std::array<int64_t, 2> strides = {1, 1};
  std::string padding = "VALID";  // or "SAME"
  graph::ActivationFn activation = {};
  bool use_bias = true;
  graph::Initializer kernel_initializer = {};
  graph::Initializer bias_initializer = {};
  std::string name = {};  // "": "conv2d"
};
// Maps images [batch, height, width, channels] to [batch, ..., ..., filters];
// the number of channels is known. Kernel: [height, width, channels, filters].
Output conv2d(const graph::Scope& s, const graph::VariableScope& vars,
              const Output& x, const Conv2dOptions& options);

struct PoolOptions {
  std::array<int64_t, 2> pool_size = {2, 2};  // height, width
  std::array<int64_t, 2> strides = {2, 2};
  std::string padding = "VALID";  // or "SAME"
};
// The largest element, or the mean, of each window over images as above.
Output max_pool(const graph::Scope& s, const Output& x,
                const PoolOptions& options = {});
Output avg_pool(const graph::Scope& s, const Output& x,
                const PoolOptions& options = {});

struct BatchNormOptions {
  // A bool scalar, literal or tensor: whether the batch's own mean and variance
  // are used, or the moving ones.
  graph::Input training = false;
  double momentum = 0.99;  // the factor of moving averages per step
  double epsilon = 1e-3;
  std::string name = {};  // "": "batch_normalization"
};
struct BatchNorm {
  Output output;  // as x
  // Operations that update the averages, if `training` is not the literal
  // false. Let steps wait for them:
  // minimize(s.with_control_dependencies(updates), ...).
  graph::Outputs updates;
};
// (x - mean) / sqrt(variance + epsilon) gamma + beta, for each of the channels,
// which are the known last dimension of two or more (Ioffe and Szegedy, "Batch
// normalization", 2015, algorithm 1). The variance is the mean of the squared
// deviations, also for "moving_variance". For half and bfloat16, computation
// and variables are in float.
BatchNorm batch_norm(const graph::Scope& s, const graph::VariableScope& vars,
                     const Output& x, const BatchNormOptions& options = {});

struct DropoutOptions {
  double rate = 0.5;             // of dropped elements: in [0, 1)
  graph::Input training = true;  // a bool scalar; false: returns x
};
// Elements of x become 0 with probability `rate`, others x / (1 - rate). The
// seed, an int32 or int64 vector of 2, determines which ones: use one number
// for the layer, and the other one for the step.
Output dropout(const graph::Scope& s, const Output& x, const graph::Input& seed,
               const DropoutOptions& options = {});

struct EmbeddingOptions {
  int64_t rows = 0;
  int64_t columns = 0;
  DataType dtype = DataType::kFloat;
  graph::Initializer initializer = {};  // left out: uniform in [-0.05, 0.05)
  std::string name = {};                // "": "embedding"
};
// Looks up the rows `ids`, int32 or int64, of the variable "embeddings": maps
// [...] to [..., columns]. The variable's gradient is sparse, unless it is
// partitioned. The run fails if an id is negative, or not below `rows`.
Output embedding(const graph::Scope& s, const graph::VariableScope& vars,
                 const graph::Input& ids, const EmbeddingOptions& options);

// Maps [batch, ...] to [batch, the product of the others].
Output flatten(const graph::Scope& s, const Output& x);

}  // namespace tagflow::autodiff::layers
