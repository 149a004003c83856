// Layers, and what they are compared with: the ops that they are made of.
#pragma once

#include <algorithm>
#include <random>

#include "devices/kernel_registry.h"
#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices::layers {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

constexpr double kTolerance = 2e-5;

// Floats in [-1, 1).
Tensor numbers(std::mt19937& random, const Shape& shape);
// Of a size that sums of products with numbers() stay near 1.
Tensor some_weights(std::mt19937& random, const Shape& shape);
// In [0, limit).
int below(std::mt19937& random, int limit);

struct Layer {
  std::string op;
  AttrMap attrs;  // of the op
  Tensor weights;
  Tensor bias;  // invalid: there is none
  Strings program;
  std::vector<Tensor> others;
  Ints outputs;  // of the program; empty: the last
  int64_t segments = 1, width = 0;
  Tensor packed;              // invalid: the weights are not packed ones
  PartialShape packed_shape;  // that the node says they have
  bool is_constant = true;    // the weights
  std::vector<Tensor> more;   // x is the first of what a ConcatV2 joins

  bool has_bias() const { return bias.valid(); }
  size_t num_outputs() const { return std::max<size_t>(1, outputs.size()); }
};

// The node of a layer.
struct Made {
  graph::Graph graph;
  graph::Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> inputs;  // without the first
};

Result<Made> make(const Layer& layer);
Result<Outputs> run(const Made& made, const Tensor& x,
                    Parallel* parallel = nullptr);
// What the ops give one by one.
Result<Outputs> run_apart(const Layer& layer, const Tensor& x);

// A bias and a program, or not, of those that there are in models.
void add_rest(std::mt19937& random, Layer& layer, const Tensor& x);
// The gates of an LSTM's cell: segments 0 to 3, then the state before.
void add_cell(Layer& layer, int64_t width);

// What _PackWeights makes of them.
Tensor packed_of(const Tensor& weights, AttrMap attrs = {});
// The same layer of weights that come packed.
Layer with_packed(Layer layer);

// What a layer makes, alone and where its work is shared.
struct Results {
  Outputs alone, shared;
};

// The test fails unless they are what the ops give one by one.
Results expect_same(const Layer& layer, const Tensor& x,
                    double tolerance = kTolerance);
// As expect_same(), for a layer whose product is of rows: its parts depend on
// shapes alone, so the bits are the same however they are shared. Returns what
// it makes.
Outputs expect_same_bits(const Layer& layer, const Tensor& x);
// The test fails unless the bits are the same.
void expect_identical(const Outputs& actual, const Outputs& expected);

}  // namespace tagflow::devices::layers
