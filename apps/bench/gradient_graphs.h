// The graphs of the workloads that differentiate, and the train steps. If
// compare.py has a counterpart, `compared` lists the results that must agree.
#pragma once

#include <cstdint>
#include <span>

#include "apps/bench/graphs.h"
#include "graph/builder/control_flow.h"

namespace tagflow::apps {

// y = x; while i < n: y *= w, i += 1. A run fetches the derivatives of y by x
// and w, or, for order 2, the derivatives of their sum. Feeds "n".
Result<BenchGraph> make_loop_grad(int order = 1);
// The gradient by x of the sum of make_map_fn(). Feeds "n".
Result<BenchGraph> make_map_fn_grad();
// The gradient by w, a vector of `bytes` in floats, of s: while i < n:
// s += i sum(w^2), i += 1. Feeds "n".
Result<BenchGraph> make_loop_grad_of_large(int64_t bytes);
// The gradient by x, a vector of `bytes` in floats, of: while i < n:
// x = sin(x), i += 1, with values kept by `save`. Feeds "n".
Result<BenchGraph> make_loop_grad_of_values(int64_t bytes,
                                            const graph::Save& save);
// The gradients of s by w, where each graph feeds "n" and has the loop: while i
// < n: i += 1, and s += mean(2^18 - i copies of w i), w a scalar
Result<BenchGraph> make_loop_grad_of_shapes();
// a push of w w, of 16 floats, to a list; s is the sum of all elements
Result<BenchGraph> make_loop_grad_of_pushes();
// s += the sum of the squares of row i mod 64 of w
Result<BenchGraph> make_loop_grad_of_gathers();
// The derivative of that order of y by x: y = x, and then y = sin(y w), n^deep
// times, in nested loops. Feeds "n".
Result<BenchGraph> make_nested_grad(int deep, int order);

// What a run of a train step computes; it fetches the loss.
enum class StepPart : uint8_t {
  kLoss,
  kGradients,  // also the gradients by all weights
  kUpdates     // also subtracts kLearningRate times these from the weights
};
inline constexpr float kLearningRate = 0.01f;
// For mlp and cnn: labels cycle through 0 to 9.
inline constexpr int kClasses = 10;

// Train steps with weights in variables, always of the same batch.
// The mean of the squares of the outputs of make_lstm().
Result<BenchGraph> make_lstm_train(const LstmSize& size,
                                   StepPart part = StepPart::kUpdates);
// As many layers as there are devices, each on its own, in one loop over time:
// the sum of the means of the squares of what the last one has at each step.
Result<BenchGraph> make_layered_lstm(const LstmSize& size,
                                     std::span<const char* const> devices,
                                     StepPart part);
// Models whose loss is the cross entropy.
enum class PictureModel : uint8_t {
  kMlp,  // of relu(x v + a) w + b: 784 inputs, 512 units, 10 classes
  // For images of 28 x 28 x 1: two 3 x 3 convolutions (32 and 64 channels),
  // each with relu and a 2 x 2 pool, and a dense layer.
  kCnn
};
Result<BenchGraph> make_train_step(PictureModel model, int batch);
// A mirrored replica on each device, with a batch of its own.
Result<BenchGraph> make_replicas(PictureModel model, int batch,
                                 std::span<const char* const> devices);

}  // namespace tagflow::apps
