#include <doctest/doctest.h>

#include <cmath>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Ints = std::vector<int64_t>;

Tensor filled(const Shape& shape, float first = 1) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  for (float& value : tensor.mutable_flat<float>()) value = first++;
  return tensor;
}

Tensor vector2(float a, float b) { return Tensor::vector<float>({a, b}); }

// A picture of 3 channels and a convolution of it to 2.
struct Layers {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {1, 8, 8, 3});
  Node* w = constant(graph, "w", filled({1, 1, 3, 2}));
  Node* two = constant(graph, "two", vector2(2, 10));
  Node* three = constant(graph, "three", vector2(3, 30));

  Node* conv(const char* name = "conv", Node* weights = nullptr,
             AttrMap attrs = {}) {
    attrs.emplace("strides", Ints{1, 1, 1, 1});
    attrs.emplace("padding", std::string("VALID"));
    return add(graph, name, "Conv2D",
               {{x, 0}, {weights == nullptr ? w : weights, 0}},
               std::move(attrs));
  }
  Node* binary(const char* name, const char* op, Node* a, Node* b) {
    return add(graph, name, op, {{a, 0}, {b, 0}});
  }
  Node* norm(const char* name, Node* a, bool training = false) {
    return add(graph, name, "FusedBatchNormV3",
               {{a, 0}, {two, 0}, {three, 0}, {two, 0}, {three, 0}},
               {{"is_training", training}, {"epsilon", 1.0f}});
  }
};

std::vector<float> elements(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  REQUIRE(node != nullptr);
  const Tensor value = must(node->attr<Tensor>("value"));
  const auto flat = value.flat<float>();
  return {flat.begin(), flat.end()};
}

// Whether the pass changes the program, and with that none of it.
bool is_left_alone(const Graph& graph, const std::vector<std::string>& fetches,
                   const std::vector<std::string>& targets = {}) {
  Program program = program_of(graph, fetches, targets);
  const std::string before = dump(program.graph);
  const bool changed = run_pass(absorb_scales, program);
  CHECK(dump(program.graph) == before);
  return !changed;
}

}  // namespace

TEST_CASE("scales and shifts of a convolution become weights and a bias") {
  Layers g;
  Node* a = g.binary("a", "Mul", g.conv(), g.two);
  Node* b = g.binary("b", "AddV2", g.three, a);
  Node* c = g.binary("c", "Mul", b, g.two);
  Node* d = g.binary("d", "Sub", c, g.three);
  Node* half = constant(g.graph, "half", Tensor::scalar(0.5f));
  g.binary("e", "RealDiv", d, half);
  Program program = program_of(g.graph, {"e"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "conv/weights = Const()\n"
        "conv_1 = Conv2D(x, conv/weights)\n"
        "conv/bias = Const()\n"
        "e_1 = BiasAdd(conv_1, conv/bias)\n");
  // ((w x * s + t) * s - t) / 0.5
  CHECK(elements(program.graph, "conv/weights") ==
        std::vector<float>{8, 400, 24, 800, 40, 1200});
  CHECK(elements(program.graph, "conv/bias") == std::vector<float>{6, 540});
  CHECK(program.graph.find("e_1")->output_shape(0) ==
        PartialShape({1, 8, 8, 2}));
  CHECK(program.fetches[0].to_string() == "e_1:0");
  CHECK(!run_pass(absorb_scales, program));
}

TEST_CASE("absorb: a Mul alone makes no bias, a Sub from a constant both") {
  Layers g;
  g.binary("a", "Mul", g.conv(), g.two);
  Program program = program_of(g.graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(dump(program.graph, "a_1") == "a_1 = Conv2D(x, conv/weights)");

  Layers h;
  h.binary("a", "Sub", h.two, h.conv());
  program = program_of(h.graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(elements(program.graph, "conv/weights") ==
        std::vector<float>{-1, -2, -3, -4, -5, -6});
  CHECK(elements(program.graph, "conv/bias") == std::vector<float>{2, 10});
}

TEST_CASE("a normalisation by given means is absorbed, by the batch's not") {
  Layers g;
  g.norm("a", g.conv());
  Program program = program_of(g.graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  // (x - [2, 10]) / sqrt([3, 30] + 1) * [2, 10] + [3, 30]
  const auto bias = elements(program.graph, "conv/bias");
  CHECK(bias[0] == doctest::Approx(3 - 2.0 * 2 / 2));
  CHECK(bias[1] == doctest::Approx(30 - 10.0 * 10 / std::sqrt(31.0)));
  CHECK(elements(program.graph, "conv/weights")[0] == doctest::Approx(1));

  Layers h;
  h.norm("a", h.conv(), /*training=*/true);
  CHECK(is_left_alone(h.graph, {"a"}));
  Layers i;
  i.norm("a", i.conv());
  CHECK(is_left_alone(i.graph, {"a", "a:1"}));
}

TEST_CASE("absorb: the channels of each data format and op are found") {
  Layers g;
  Node* row = constant(g.graph, "row", filled({1, 1, 1, 2}, 2));
  g.binary("a", "Mul", g.conv(), row);
  Program program = program_of(g.graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(elements(program.graph, "conv/weights") ==
        std::vector<float>{2, 6, 6, 12, 10, 18});

  // A depthwise filter of [.., 3 channels, multiplier 2].
  Layers h;
  Node* six = constant(h.graph, "six", filled({6}));
  Node* depthwise =
      add(h.graph, "conv", "DepthwiseConv2dNative", {{h.x, 0}, {h.w, 0}},
          {{"strides", Ints{1, 1, 1, 1}}, {"padding", std::string("VALID")}});
  h.binary("a", "Mul", depthwise, six);
  program = program_of(h.graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(elements(program.graph, "conv/weights") ==
        std::vector<float>{1, 4, 9, 16, 25, 36});

  // Channels first.
  Layers i;
  i.x = placeholder(i.graph, "y", DataType::kFloat, {1, 3, 8, 8});
  Node* column = constant(i.graph, "column", filled({2, 1, 1}));
  Node* first = i.conv("conv", nullptr, {{"data_format", std::string("NCHW")}});
  Node* scaled = i.binary("a", "Mul", first, column);
  i.binary("b", "AddV2", scaled, column);
  program = program_of(i.graph, {"b"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(elements(program.graph, "conv/weights") ==
        std::vector<float>{1, 4, 3, 8, 5, 12});
  CHECK(must(program.graph.find("b_1")->attr<std::string>("data_format")) ==
        "NCHW");

  // A matrix that is used transposed.
  Graph graph;
  Node* m = placeholder(graph, "m", DataType::kFloat, {4, 3});
  Node* weights = constant(graph, "w", filled({2, 3}));
  Node* by = constant(graph, "by", vector2(2, 10));
  Node* product = add(graph, "product", "MatMul", {{m, 0}, {weights, 0}},
                      {{"transpose_b", true}});
  add(graph, "a", "Mul", {{product, 0}, {by, 0}});
  program = program_of(graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(elements(program.graph, "product/weights") ==
        std::vector<float>{2, 4, 6, 40, 50, 60});
}

TEST_CASE("absorb: a result that others need, or of unfit shape, stays") {
  {
    Layers g;  // a result in between is fetched
    g.binary("a", "Mul", g.conv(), g.two);
    CHECK(is_left_alone(g.graph, {"a", "conv"}));
    // run, or waited for
    CHECK(is_left_alone(g.graph, {"a"}, {"conv"}));
    add(g.graph, "late", "Identity", {{g.x, 0}}, {}, {g.graph.find("conv")});
    CHECK(is_left_alone(g.graph, {"a", "late"}));
  }
  {
    Layers g;  // the weights serve two
    g.binary("a", "Mul", g.conv(), g.two);
    g.conv("other");
    CHECK(is_left_alone(g.graph, {"a", "other"}));
  }
  {
    Layers g;  // weights or a scale that are fed
    Node* fed = placeholder(g.graph, "fed", DataType::kFloat, {1, 1, 3, 2});
    g.binary("a", "Mul", g.conv("conv", fed), g.two);
    Node* s = placeholder(g.graph, "s", DataType::kFloat, {2});
    Node* v = constant(g.graph, "v", filled({1, 1, 3, 2}));
    g.binary("b", "Mul", g.conv("conv2", v), s);
    CHECK(is_left_alone(g.graph, {"a", "b"}));
  }
  {
    Layers g;  // not one for each channel
    Node* columns = constant(g.graph, "columns", filled({8, 1}));
    g.binary("a", "Mul", g.conv(), columns);
    CHECK(is_left_alone(g.graph, {"a"}));
  }
  {
    Layers g;  // more dimensions than the result has
    Node* five = constant(g.graph, "five", filled({1, 1, 1, 1, 2}));
    g.binary("a", "Mul", g.conv(), five);
    CHECK(is_left_alone(g.graph, {"a"}));
  }
  {
    Layers g;  // a shift alone, and a square
    g.binary("a", "AddV2", g.conv(), g.two);
    CHECK(is_left_alone(g.graph, {"a"}));
    Node* v = constant(g.graph, "v", filled({1, 1, 3, 2}));
    Node* other = g.conv("other", v);
    g.binary("b", "Mul", other, other);
    CHECK(is_left_alone(g.graph, {"b"}));
    // a constant that is divided
    g.binary("c", "RealDiv", g.two, g.conv("third", v));
    CHECK(is_left_alone(g.graph, {"c"}));
  }
  {
    Layers g;  // weights that would not be finite
    Node* huge = constant(g.graph, "huge", Tensor::scalar(1e38f));
    g.binary("a", "Mul", g.conv(), huge);
    CHECK(is_left_alone(g.graph, {"a"}));
    // a bias that would be finite only as a double
    Node* large = constant(g.graph, "large", Tensor::scalar(3e38f));
    Node* u = constant(g.graph, "u", filled({1, 1, 3, 2}));
    Node* sum = g.binary("sum", "AddV2", g.conv("shifted", u), large);
    g.binary("d", "Mul", sum, g.two);
    CHECK(is_left_alone(g.graph, {"d"}));
    Node* zero = constant(g.graph, "zero", vector2(1, 0));
    Node* v = constant(g.graph, "v", filled({1, 1, 3, 2}));
    g.binary("b", "RealDiv", g.conv("other", v), zero);
    CHECK(is_left_alone(g.graph, {"b"}));
  }
  {
    Layers g;  // another device
    g.graph.set_device(g.binary("a", "Mul", g.conv(), g.two), "/device:CPU:1");
    CHECK(is_left_alone(g.graph, {"a"}));
  }
  {
    Layers g;  // a bias of the other format
    Node* scaled = g.binary("a", "Mul", g.conv(), g.two);
    Node* eight = constant(g.graph, "eight", filled({8}));
    add(g.graph, "b", "BiasAdd", {{scaled, 0}, {eight, 0}},
        {{"data_format", std::string("NCHW")}});
    Program program = program_of(g.graph, {"b"});
    CHECK(run_pass(absorb_scales, program));
    CHECK(dump(program.graph, "b") == "b = BiasAdd(a_1, eight)");
  }
}

TEST_CASE("absorb: the new node waits for all that the chain waited for") {
  Layers g;
  const auto scalar = [&](const char* name) {
    return placeholder(g.graph, name, DataType::kFloat, PartialShape::scalar());
  };
  Node* p = scalar("p");
  Node* q = scalar("q");
  Node* r = scalar("r");
  Node* s = scalar("s");
  Node* weights =
      add(g.graph, "v", "Const", {},
          {{"value", filled({1, 1, 3, 2})}, {"dtype", DataType::kFloat}}, {p});
  Node* by = add(g.graph, "by", "Const", {},
                 {{"value", vector2(2, 3)}, {"dtype", DataType::kFloat}}, {q});
  Node* conv = add(
      g.graph, "conv", "Conv2D", {{g.x, 0}, {weights, 0}},
      {{"strides", Ints{1, 1, 1, 1}}, {"padding", std::string("VALID")}}, {r});
  Node* a = add(g.graph, "a", "Mul", {{conv, 0}, {by, 0}}, {}, {s});
  g.binary("b", "AddV2", a, g.three);
  add(g.graph, "late", "Identity", {{g.x, 0}}, {}, {g.graph.find("b")});
  Program program = program_of(g.graph, {"b", "late"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(dump(program.graph, "conv/weights") == "conv/weights = Const(^p, ^q)");
  CHECK(dump(program.graph, "conv_1") ==
        "conv_1 = Conv2D(x, conv/weights, ^r)");
  CHECK(dump(program.graph, "b_1") == "b_1 = BiasAdd(conv_1, conv/bias, ^s)");
  CHECK(dump(program.graph, "late") == "late = Identity(x, ^b_1)");
}

TEST_CASE("a Pad in front of a convolution becomes its padding") {
  const auto pad = [](Graph& graph, Node* x, std::vector<int32_t> sizes) {
    Node* by = constant(graph, "by",
                        Tensor::of<int32_t>({int64_t(sizes.size()) / 2, 2},
                                            std::span<const int32_t>(sizes)));
    return add(graph, "pad", "Pad", {{x, 0}, {by, 0}});
  };
  Layers g;
  Node* const x = g.x;
  g.x = pad(g.graph, x, {0, 0, 1, 2, 3, 4, 0, 0});
  g.binary("a", "Mul", g.conv(), g.two);
  Program program = program_of(g.graph, {"a"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(dump(program.graph, "a_1") == "a_1 = Conv2D(x, conv/weights)");
  const Node* made = program.graph.find("a_1");
  CHECK(must(made->attr<std::string>("padding")) == "EXPLICIT");
  CHECK(must(made->attr<Ints>("explicit_paddings")) ==
        Ints{0, 0, 1, 2, 3, 4, 0, 0});
  CHECK(made->output_shape(0) == PartialShape({1, 11, 15, 2}));

  // Also if nothing is scaled, and in front of what pads already.
  Layers h;
  h.x = pad(h.graph, h.x, {0, 0, 1, 2, 3, 4, 0, 0});
  h.conv("conv", nullptr,
         {{"padding", std::string("EXPLICIT")},
          {"explicit_paddings", Ints{0, 0, 1, 1, 1, 1, 0, 0}}});
  program = program_of(h.graph, {"conv"});
  CHECK(run_pass(absorb_scales, program));
  CHECK(dump(program.graph, "conv_1") == "conv_1 = Conv2D(x, w)");
  CHECK(must(program.graph.find("conv_1")->attr<Ints>("explicit_paddings")) ==
        Ints{0, 0, 2, 3, 4, 5, 0, 0});

  // Not around images or channels, nor if SAME asks for more, nor if
  // somebody else reads it, nor by less than nothing.
  for (const std::vector<int32_t>& sizes :
       {std::vector<int32_t>{1, 0, 0, 0, 0, 0, 0, 0},
        std::vector<int32_t>{0, 0, -1, 0, 0, 0, 0, 0}}) {
    Layers i;
    i.x = placeholder(i.graph, "y", DataType::kFloat);
    i.x = pad(i.graph, i.x, sizes);
    i.conv();
    CHECK(is_left_alone(i.graph, {"conv"}));
  }
  Layers j;
  j.x = pad(j.graph, j.x, {0, 0, 1, 1, 1, 1, 0, 0});
  j.conv("conv", nullptr, {{"padding", std::string("SAME")}});
  j.conv("valid");
  CHECK(is_left_alone(j.graph, {"conv"}));
  CHECK(is_left_alone(j.graph, {"valid", "pad"}));
}
