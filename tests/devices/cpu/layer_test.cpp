// Layers against the ops that they are made of.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "devices/kernel_registry.h"
#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

constexpr double kTolerance = 2e-5;

Tensor numbers(std::mt19937& random, const Shape& shape) {
  Tensor tensor = *Tensor::allocate(DataType::kFloat, shape);
  std::uniform_real_distribution<float> any(-1, 1);
  for (float& value : tensor.mutable_flat<float>()) value = any(random);
  return tensor;
}

// Of a size that sums of products with numbers() stay near 1.
Tensor some_weights(std::mt19937& random, const Shape& shape) {
  Tensor tensor = numbers(random, shape);
  const auto count = double(tensor.num_elements());
  const double terms = count / double(shape.dim(shape.rank() - 1));
  for (float& value : tensor.mutable_flat<float>())
    value = float(value / std::sqrt(terms));
  return tensor;
}

// Into so many parts, as workers would, but in turns and the last part first.
class Parts : public Parallel {
 public:
  void run(int64_t total, double,
           const std::function<void(int64_t, int64_t)>& body) override {
    for (int64_t i = total; i-- > 0;) body(i, i + 1);
  }
};

struct Layer {
  std::string op;
  AttrMap attrs;  // of the op
  Tensor weights;
  Tensor bias;  // invalid: there is none
  Strings program;
  std::vector<Tensor> others;

  bool has_bias() const { return bias.valid(); }
};

// The node of a layer whose weights are a constant.
struct Made {
  Graph graph;
  Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> inputs;  // without the first
};

Result<Made> make(const Layer& layer) {
  Made made;
  made.inputs = {layer.weights};
  if (layer.has_bias()) made.inputs.push_back(layer.bias);
  made.inputs.insert(made.inputs.end(), layer.others.begin(),
                     layer.others.end());
  std::vector<Endpoint> endpoints;
  const AttrMap dtype = {{"dtype", layer.weights.dtype()}};
  TAGFLOW_ASSIGN(Node * x, made.graph.add("x", "Placeholder", {}, dtype));
  endpoints.push_back({x, 0});
  for (const Tensor& input : made.inputs) {
    AttrMap attrs = dtype;
    const bool known = endpoints.size() == 1;
    if (known) attrs.insert_or_assign("value", input);
    TAGFLOW_ASSIGN(Node * node, made.graph.add(made.graph.unique_name("input"),
                                               known ? "Const" : "Placeholder",
                                               {}, std::move(attrs)));
    endpoints.push_back({node, 0});
  }
  Strings names = {"product"};
  if (layer.has_bias()) names.push_back("bias");
  for (size_t i = 0; i < layer.program.size(); ++i)
    names.push_back(fmt::format("op{}", i));
  AttrMap attrs = layer.attrs;
  attrs.insert_or_assign("N", int64_t(made.inputs.size()) - 1);
  attrs.insert_or_assign("has_bias", layer.has_bias());
  attrs.insert_or_assign("program", layer.program);
  attrs.insert_or_assign("names", std::move(names));
  TAGFLOW_ASSIGN(made.node, made.graph.add("layer", "_Fused" + layer.op,
                                           endpoints, std::move(attrs)));
  TAGFLOW_ASSIGN(made.kernel, KernelRegistry::global().make(*made.node, "CPU"));
  return made;
}

Result<Tensor> run(const Made& made, const Tensor& x,
                   Parallel* parallel = nullptr) {
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), made.inputs.begin(), made.inputs.end());
  Outputs outputs(1);
  StepInfo step;
  step.parallel = parallel;
  const Tag tag;
  KernelContext context(made.node, inputs, outputs, &step, &tag);
  CHECK(made.kernel->may_be_expensive());
  CHECK(made.kernel->cost(context) >= 0);
  TAGFLOW_RETURN_IF_ERROR(made.kernel->compute(context));
  return outputs[0];
}

// What the ops give one by one.
Result<Tensor> run_apart(const Layer& layer, const Tensor& x) {
  TAGFLOW_ASSIGN(Outputs out,
                 run_op(layer.op, {x, layer.weights}, layer.attrs));
  if (layer.has_bias()) {
    TAGFLOW_ASSIGN(out, run_op("BiasAdd", {out[0], layer.bias}));
  }
  std::vector<Tensor> values = {out[0]};
  values.insert(values.end(), layer.others.begin(), layer.others.end());
  for (const std::string& line : layer.program) {
    std::vector<Tensor> operands;
    const size_t op_end = line.find(' ');
    for (size_t at = op_end; at != line.npos; at = line.find(' ', at + 1))
      operands.push_back(values[std::stoul(line.substr(at + 1))]);
    TAGFLOW_ASSIGN(out, run_op(line.substr(0, op_end), operands));
    values.push_back(out[0]);
  }
  return values.back();
}

void expect_same(const Layer& layer, const Tensor& x) {
  const auto made = make(layer);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  const auto expected = run_apart(layer, x);
  REQUIRE_MESSAGE(expected.ok(), expected.status().to_string());
  Parts parts;
  for (Parallel* parallel :
       {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&parts)}) {
    const auto actual = run(*made, x, parallel);
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    expect_close(*actual, *expected, kTolerance);
  }
}

AttrMap window(Ints strides, const std::string& padding, Ints dilations,
               Ints paddings = {}) {
  AttrMap attrs = {{"strides", Ints{1, strides[0], strides[1], 1}},
                   {"padding", padding},
                   {"dilations", Ints{1, dilations[0], dilations[1], 1}}};
  if (!paddings.empty())
    attrs.insert_or_assign(
        "explicit_paddings",
        Ints{0, 0, paddings[0], paddings[1], paddings[2], paddings[3], 0, 0});
  return attrs;
}

int below(std::mt19937& random, int limit) {
  return std::uniform_int_distribution<int>(0, limit - 1)(random);
}

// A bias and a program, or not, of those that there are in models.
void add_rest(std::mt19937& random, Layer& layer, const Tensor& x) {
  const auto product = run_apart(layer, x);
  REQUIRE_MESSAGE(product.ok(), product.status().to_string());
  const Shape shape = product->shape();
  if (below(random, 3) > 0)
    layer.bias = numbers(random, {shape.dim(shape.rank() - 1)});
  switch (below(random, 6)) {
    case 0:
      break;
    case 1:
      layer.program = {"Relu6 0"};
      break;
    case 2:
      layer.program = {"Sigmoid 0", "Mul 0 1"};
      break;
    case 3:
      layer.program = {"AddV2 1 0", "Relu 2"};
      layer.others = {numbers(random, shape)};
      break;
    case 4:
      layer.others = {numbers(random, shape), Tensor::scalar(2.0f)};
      layer.program = {"Mul 0 2", "Sub 3 1"};
      break;
    default:
      layer.program = {"Elu 0"};
  }
}

}  // namespace

TEST_CASE("random convolutions are what their ops make one by one") {
  std::mt19937 random(17);
  for (int i = 0; i < 150; ++i) {
    CAPTURE(i);
    Layer layer;
    const int channels = 1 + below(random, 20);
    const int height = 1 + below(random, 3), width = 1 + below(random, 4);
    const Ints strides = {1 + below(random, 3), 1 + below(random, 3)};
    const Ints dilations = {1 + below(random, 2), 1 + below(random, 2)};
    const int in_height = 9 + below(random, 12);
    const int in_width = 9 + below(random, 12);
    const char* paddings[] = {"SAME", "VALID", "EXPLICIT"};
    const std::string padding = paddings[below(random, 3)];
    Ints sizes;
    if (padding == "EXPLICIT")
      for (int k = 0; k < 4; ++k) sizes.push_back(below(random, 4));
    const bool depthwise = below(random, 3) == 0;
    layer.op = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
    // A depthwise kernel strides alike both ways.
    layer.attrs = window(depthwise ? Ints{strides[0], strides[0]} : strides,
                         padding, dilations, sizes);
    // Some with groups.
    const int groups = !depthwise && below(random, 5) == 0 ? 2 : 1;
    const int outputs =
        depthwise ? 1 + below(random, 2) : groups * (1 + below(random, 20));
    layer.weights = some_weights(random, {height, width, channels, outputs});
    const Tensor x = numbers(
        random, {1 + below(random, 4), in_height, in_width, channels * groups});
    add_rest(random, layer, x);
    expect_same(layer, x);
  }
}

TEST_CASE("convolutions that are cut into many parts are whole again") {
  std::mt19937 random(18);
  // Images, rows, and positions, of so much work that they are cut.
  for (const Ints& sizes :
       {Ints{40, 14, 14, 32, 3, 32, 1}, Ints{1, 61, 57, 32, 3, 64, 1},
        Ints{3, 57, 60, 24, 3, 64, 2}, Ints{1, 60, 60, 64, 1, 128, 1},
        Ints{2, 57, 57, 64, 1, 128, 2}, Ints{1, 33, 30, 64, 5, 32, 2}}) {
    for (const char* padding : {"SAME", "VALID"}) {
      CAPTURE(sizes[0]);
      CAPTURE(sizes[1]);
      Layer layer;
      layer.op = "Conv2D";
      layer.attrs = window({sizes[6], sizes[6]}, padding, {1, 1});
      layer.weights =
          some_weights(random, {sizes[4], sizes[4], sizes[3], sizes[5]});
      const Tensor x =
          numbers(random, {sizes[0], sizes[1], sizes[2], sizes[3]});
      layer.bias = numbers(random, {sizes[5]});
      add_rest(random, layer, x);
      expect_same(layer, x);
    }
  }
  Layer layer;
  layer.op = "DepthwiseConv2dNative";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 64, 1});
  layer.program = {"Relu6 0"};
  expect_same(layer, numbers(random, {1, 112, 112, 64}));
}

TEST_CASE("matrix products of any number of rows are layers") {
  std::mt19937 random(19);
  for (const int rows : {1, 7, 8, 33, 400})
    for (const bool transposed : {false, true}) {
      CAPTURE(rows);
      Layer layer;
      layer.op = "MatMul";
      layer.attrs = {{"transpose_b", transposed}};
      layer.weights =
          some_weights(random, transposed ? Shape{96, 70} : Shape{70, 96});
      const Tensor x = numbers(random, {rows, 70});
      add_rest(random, layer, x);
      expect_same(layer, x);
      layer = Layer();
      layer.op = "BatchMatMulV2";
      layer.attrs = {{"adj_y", transposed}};
      layer.weights =
          some_weights(random, transposed ? Shape{96, 70} : Shape{70, 96});
      const Tensor stack = numbers(random, {2, rows, 3, 70});
      add_rest(random, layer, stack);
      expect_same(layer, stack);
    }
}

TEST_CASE("many weights for few rows are cut by columns") {
  std::mt19937 random(21);
  for (const int rows : {8, 33, 128, 129})
    for (const bool transposed : {false, true}) {
      CAPTURE(rows);
      CAPTURE(transposed);
      Layer layer;
      layer.op = "MatMul";
      layer.attrs = {{"transpose_b", transposed}};
      // Three parts of 64 columns, and one of 8.
      layer.weights = some_weights(
          random, transposed ? Shape{200, 1024} : Shape{1024, 200});
      const Tensor x = numbers(random, {rows, 1024});
      expect_same(layer, x);
      add_rest(random, layer, x);
      expect_same(layer, x);
    }
}

TEST_CASE("one kernel serves many shapes, also more than it remembers") {
  std::mt19937 random(20);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 5});
  layer.program = {"Relu 0"};
  const auto made = make(layer);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  for (int again = 0; again < 2; ++again)
    for (int size = 1; size < 14; ++size) {
      const Tensor x = numbers(random, {1, size, 20 - size, 4});
      expect_close(*run(*made, x), *run_apart(layer, x), kTolerance);
    }
}

TEST_CASE("a NaN goes through a layer as through its ops") {
  std::mt19937 random(21);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.bias = numbers(random, {16});
  for (const char* op : {"Relu 0", "Relu6 0", "Sigmoid 0"}) {
    layer.program = {op};
    Tensor x = numbers(random, {1, 9, 9, 4});
    x.mutable_data<float>()[100] = std::numeric_limits<float>::quiet_NaN();
    expect_same(layer, x);
  }
}

TEST_CASE("other operands may be of a shape that came late") {
  std::mt19937 random(22);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.program = {"AddV2 0 1"};
  const Tensor x = numbers(random, {2, 9, 9, 4});
  for (const Shape& shape : {Shape{16}, Shape{2, 1, 1, 16}, Shape{1, 1, 1, 1},
                             Shape{3, 2, 9, 9, 16}}) {
    layer.others = {numbers(random, shape)};
    expect_same(layer, x);
  }
}

TEST_CASE("an error is that of the op, which it names") {
  std::mt19937 random(23);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "VALID", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  const auto fails = [&](const Tensor& x, std::string_view text) {
    const auto made = make(layer);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    expect_error(run(*made, x), Code::kInvalidArgument, text);
  };
  fails(numbers(random, {1, 9, 4}), "[Conv2D] input 0 is float[1,9,4]");
  fails(numbers(random, {1, 9, 9, 5}), "in \"product\"");
  fails(numbers(random, {1, 1, 9, 4}), "[Conv2D] ");
  layer.bias = numbers(random, {15});
  fails(numbers(random, {1, 9, 9, 4}), "in \"bias\"");
  layer.bias = Tensor();
  layer.program = {"AddV2 0 1"};
  layer.others = {numbers(random, {3})};
  fails(numbers(random, {1, 9, 9, 4}), "\"op0\"");
}

TEST_CASE("nothing comes of nothing") {
  std::mt19937 random(24);
  Layer layer;
  layer.op = "Conv2D";
  layer.attrs = window({1, 1}, "SAME", {1, 1});
  layer.weights = some_weights(random, {3, 3, 4, 16});
  layer.program = {"Relu 0"};
  expect_same(layer, numbers(random, {0, 9, 9, 4}));
  layer.op = "MatMul";
  layer.attrs = {};
  layer.weights = some_weights(random, {40, 40});
  expect_same(layer, numbers(random, {0, 40}));
}

TEST_CASE("a layer that does not fit together is refused") {
  std::mt19937 random(25);
  Layer layer;
  layer.op = "MatMul";
  layer.weights = some_weights(random, {40, 40});
  layer.others = {numbers(random, {40})};
  expect_error(make(layer), Code::kInvalidArgument, "1 operands of no program");
  layer.program = {"Neg 2"};
  expect_error(make(layer), Code::kInvalidArgument,
               "[_FusedMatMul] node \"layer\": ");
  layer.program = {"MatMul 0 1"};
  expect_error(make(layer), Code::kInvalidArgument, "cannot be fused");
}

}  // namespace tagflow::devices
