#include "tests/devices/kernels/product/fixture.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/devices/parts_parallel.h"

namespace tagflow::devices::layers {

using graph::Endpoint;
using graph::Node;

Tensor numbers(std::mt19937& random, const Shape& shape) {
  Tensor tensor = *Tensor::allocate(DataType::kFloat, shape);
  std::uniform_real_distribution<float> any(-1, 1);
  for (float& value : tensor.mutable_flat<float>()) value = any(random);
  return tensor;
}

Tensor some_weights(std::mt19937& random, const Shape& shape) {
  Tensor tensor = numbers(random, shape);
  const auto count = double(tensor.num_elements());
  const double terms = count / double(shape.dim(shape.rank() - 1));
  for (float& value : tensor.mutable_flat<float>())
    value = float(value / std::sqrt(terms));
  return tensor;
}

Result<Made> make(const Layer& layer) {
  Made made;
  const bool comes_packed = layer.packed.valid();
  made.inputs = {comes_packed ? layer.packed : layer.weights};
  if (layer.has_bias()) made.inputs.push_back(layer.bias);
  made.inputs.insert(made.inputs.end(), layer.others.begin(),
                     layer.others.end());
  made.inputs.insert(made.inputs.end(), layer.more.begin(), layer.more.end());
  std::vector<Endpoint> endpoints;
  TAGFLOW_ASSIGN(Node * x, made.graph.add("x", "Placeholder", {},
                                          {{"dtype", layer.weights.dtype()}}));
  endpoints.push_back({x, 0});
  for (const Tensor& input : made.inputs) {
    AttrMap attrs = {{"dtype", input.dtype()}};
    const bool known =
        endpoints.size() == 1 && layer.is_constant && !comes_packed;
    if (known) attrs.insert_or_assign("value", input);
    TAGFLOW_ASSIGN(Node * node, made.graph.add(made.graph.unique_name("input"),
                                               known ? "Const" : "Placeholder",
                                               {}, std::move(attrs)));
    endpoints.push_back({node, 0});
  }
  Strings names;
  if (!layer.more.empty()) names.push_back("join");
  names.push_back("product");
  if (layer.has_bias()) names.push_back("bias");
  for (size_t i = 0; i < layer.program.size(); ++i)
    names.push_back(fmt::format("op{}", i));
  AttrMap attrs = layer.attrs;
  attrs.insert_or_assign("N",
                         int64_t(made.inputs.size() - 1 - layer.more.size()));
  attrs.insert_or_assign("S", int64_t(layer.more.size()));
  attrs.insert_or_assign("has_bias", layer.has_bias());
  attrs.insert_or_assign("program", layer.program);
  attrs.insert_or_assign("names", std::move(names));
  attrs.insert_or_assign("M", int64_t(layer.num_outputs()));
  attrs.insert_or_assign("outputs", layer.outputs);
  attrs.insert_or_assign("segments", layer.segments);
  attrs.insert_or_assign("width", layer.width);
  if (comes_packed) attrs.insert_or_assign("weights", layer.packed_shape);
  TAGFLOW_ASSIGN(made.node, made.graph.add("layer",
                                           comes_packed ? "_PackedMatMul"
                                                        : "_Fused" + layer.op,
                                           endpoints, std::move(attrs)));
  TAGFLOW_ASSIGN(made.kernel, KernelRegistry::global().make(*made.node, "CPU"));
  return made;
}

Result<Outputs> run(const Made& made, const Tensor& x, Parallel* parallel) {
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), made.inputs.begin(), made.inputs.end());
  Outputs outputs(size_t(made.node->num_outputs()));
  StepInfo step;
  step.parallel = parallel;
  const Tag tag;
  KernelContext context(made.node, inputs, outputs, &step, &tag);
  CHECK(made.kernel->may_be_expensive());
  CHECK(made.kernel->cost(context) >= 0);
  TAGFLOW_RETURN_IF_ERROR(made.kernel->compute(context));
  return outputs;
}

Result<Outputs> run_apart(const Layer& layer, const Tensor& x) {
  Tensor factor = x;
  if (!layer.more.empty()) {
    std::vector<Tensor> parts = {x};
    parts.insert(parts.end(), layer.more.begin(), layer.more.end());
    parts.push_back(Tensor::scalar(-1));
    TAGFLOW_ASSIGN(const Outputs joined, run_op("ConcatV2", parts));
    factor = joined[0];
  }
  TAGFLOW_ASSIGN(Outputs values,
                 run_op(layer.op, {factor, layer.weights}, layer.attrs));
  if (layer.has_bias()) {
    TAGFLOW_ASSIGN(values, run_op("BiasAdd", {values[0], layer.bias}));
  }
  if (layer.segments > 1) {
    const Tensor axis = Tensor::scalar(int32_t(values[0].rank() - 1));
    TAGFLOW_ASSIGN(values, run_op("Split", {axis, values[0]},
                                  {{"num_split", layer.segments}}));
  }
  values.insert(values.end(), layer.others.begin(), layer.others.end());
  for (const std::string& line : layer.program) {
    std::vector<Tensor> operands;
    const size_t op_end = line.find(' ');
    for (size_t at = op_end; at != line.npos; at = line.find(' ', at + 1))
      operands.push_back(values[std::stoul(line.substr(at + 1))]);
    TAGFLOW_ASSIGN(const Outputs out, run_op(line.substr(0, op_end), operands));
    values.push_back(out[0]);
  }
  if (layer.outputs.empty()) return Outputs{values.back()};
  Outputs outputs;
  for (const int64_t value : layer.outputs)
    outputs.push_back(values[size_t(value)]);
  return outputs;
}

Results expect_same(const Layer& layer, const Tensor& x, double tolerance) {
  const auto made = make(layer);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  const auto expected = run_apart(layer, x);
  REQUIRE_MESSAGE(expected.ok(), expected.status().to_string());
  PartsParallel parts;
  const auto alone = run(*made, x);
  const auto shared = run(*made, x, &parts);
  for (const auto& actual : {alone, shared}) {
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    REQUIRE(actual->size() == expected->size());
    for (size_t i = 0; i < expected->size(); ++i)
      expect_close((*actual)[i], (*expected)[i], tolerance);
  }
  return {*alone, *shared};
}

void expect_identical(const Outputs& actual, const Outputs& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(identical(actual[i], expected[i]));
  }
}

Outputs expect_same_bits(const Layer& layer, const Tensor& x) {
  Results results = expect_same(layer, x);
  expect_identical(results.shared, results.alone);
  return std::move(results.alone);
}

int below(std::mt19937& random, int limit) {
  return std::uniform_int_distribution<int>(0, limit - 1)(random);
}

void add_rest(std::mt19937& random, Layer& layer, const Tensor& x) {
  const auto product = run_apart(layer, x);
  REQUIRE_MESSAGE(product.ok(), product.status().to_string());
  const Shape shape = product->front().shape();
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

void add_cell(Layer& layer, int64_t width) {
  layer.segments = 4;
  layer.width = width;
  layer.program = {"Sigmoid 0",  "Tanh 1",  "Sigmoid 2",
                   "Sigmoid 3",  "Mul 5 6", "Mul 7 4",
                   "AddV2 9 10", "Tanh 11", "Mul 8 12"};
  layer.outputs = {13, 11, 5};
}

Tensor packed_of(const Tensor& weights, AttrMap attrs) {
  const auto packed = run_op("_PackWeights", {weights}, std::move(attrs));
  REQUIRE_MESSAGE(packed.ok(), packed.status().to_string());
  return packed->front();
}

Layer with_packed(Layer layer) {
  const auto transposed = layer.attrs.find("transpose_b");
  AttrMap attrs;
  if (transposed != layer.attrs.end())
    attrs.emplace("transposed", transposed->second);
  layer.packed = packed_of(layer.weights, std::move(attrs));
  layer.packed_shape = PartialShape(layer.weights.shape());
  return layer;
}

}  // namespace tagflow::devices::layers
