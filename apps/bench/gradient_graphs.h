// The graphs of the workloads that differentiate, and the train steps. What has
// a counterpart in compare.py says by `compared` which results are the same.
#pragma once

#include <cstdint>

#include "apps/bench/graphs.h"
#include "graph/builder/control_flow.h"

namespace tagflow::apps {

// Of y: while i < n: y *= w, i += 1, from y = x on. A run fetches the
// derivatives by x and w of y, or, of order 2, of the sum of those. Feeds "n".
Result<BenchGraph> make_loop_grad(int order = 1);
// The gradient by x of the sum of make_map_fn(). Feeds "n".
Result<BenchGraph> make_map_fn_grad();
// The gradient by w, a vector of `bytes` in floats, of s: while i < n:
// s += i sum(w^2), i += 1. Feeds "n".
Result<BenchGraph> make_loop_grad_of_large(int64_t bytes);
// The gradient by x, a vector of `bytes` in floats, of: while i < n:
// x = sin(x), i += 1, which keeps what `save` says. Feeds "n".
Result<BenchGraph> make_loop_grad_of_values(int64_t bytes,
                                            const graph::Save& save);
// The gradients by w of s, all of which feed "n": while i < n: i += 1, and
// s += mean(of 2^18 - i times w i), w a scalar
Result<BenchGraph> make_loop_grad_of_shapes();
// a list gets w w, of 16 floats; s is the sum of all elements
Result<BenchGraph> make_loop_grad_of_pushes();
// s += the sum of the squares of row i mod 64 of w
Result<BenchGraph> make_loop_grad_of_gathers();
// The derivative by x, of that order, of y: y = sin(y w), n^deep times from y =
// x on, in loops within loops. Feeds "n".
Result<BenchGraph> make_nested_grad(int deep, int order);

// What a run of a train step computes: its fetch is the loss.
enum class StepPart : uint8_t {
  kLoss,
  kGradients,  // and the gradients by all weights
  kUpdates     // and takes kLearningRate of them from the weights
};
inline constexpr float kLearningRate = 0.01f;
// Of mlp and cnn: labels are 0 to 9 in turns.
inline constexpr int kClasses = 10;

// Train steps with weights in variables, always of the same batch.
// The mean of the squares of the outputs of make_lstm().
Result<BenchGraph> make_lstm_train(const LstmSize& size,
                                   StepPart part = StepPart::kUpdates);
// The cross entropy of relu(x v + a) w + b: 784 inputs, 512 units, 10 classes.
Result<BenchGraph> make_mlp(int batch);
// The same of pictures of 28 x 28 x 1: twice a 3 x 3 convolution (32, then 64
// channels) with relu and a pool of 2 x 2, and a dense layer.
Result<BenchGraph> make_cnn(int batch);

}  // namespace tagflow::apps
