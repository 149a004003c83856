// Activations, softmax, losses, biases and membership in the best k, against
// values that TensorFlow gave.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(std::initializer_list<float> values) {
  return Tensor::vector<float>(values);
}
Tensor matrix(int64_t rows, std::initializer_list<float> values) {
  return Tensor::of<float>({rows, int64_t(values.size()) / rows}, values);
}

TEST_CASE("activations pass NaN and saturate at infinity") {
  const Tensor x = floats({kNaN, -kInf, -1, 0, 1, 7, kInf});
  const auto run = [&](const char* op) { return run_op(op, {x}); };
  expect_close(run("Relu"), floats({kNaN, 0, 0, 0, 1, 7, kInf}));
  expect_close(run("Relu6"), floats({kNaN, 0, 0, 0, 1, 6, 6}));
  expect_close(run("Elu"), floats({kNaN, -1, -0.63212055f, 0, 1, 7, kInf}));
  expect_close(run("LeakyRelu"), floats({kNaN, -kInf, -0.2f, 0, 1, 7, kInf}));
  expect_close(run("Softplus"), floats({kNaN, 0, 0.31326169f, 0.69314718f,
                                        1.3132616f, 7.0009117f, kInf}));
}

TEST_CASE("gradients of activations follow the side of the corner") {
  const Tensor x = floats({-1, 0, 1, 7});
  const Tensor dy = floats({2, 2, 2, 2});
  const auto run = [&](const char* op) { return run_op(op, {dy, x}); };
  expect_close(run("ReluGrad"), floats({0, 0, 2, 2}));
  expect_close(run("Relu6Grad"), floats({0, 0, 2, 0}));
  expect_close(run("EluGrad"), floats({0, 2, 2, 2}));
  expect_close(run("LeakyReluGrad"), floats({0.4f, 0.4f, 2, 2}));
  expect_close(run("SoftplusGrad"),
               floats({0.53788286f, 1, 1.4621171f, 1.998178f}));
}

TEST_CASE("activations take the types that they make sense for") {
  expect_close(run_op("Relu", {Tensor::vector<int8_t>({-3, 5})}),
               Tensor::vector<int8_t>({0, 5}));
  expect_close(run_op("Relu6", {Tensor::vector<uint16_t>({3, 9})}),
               Tensor::vector<uint16_t>({3, 6}));
  expect_close(
      run_op("LeakyRelu", {Tensor::vector<double>({-2, 3})}, {{"alpha", 2.0f}}),
      Tensor::vector<double>({-4, 3}));
  expect_close(
      run_op("LeakyRelu", {Tensor::vector<Half>({Half(-4.f), Half(3.f)})},
             {{"alpha", 0.5f}}),
      Tensor::vector<Half>({Half(-2.f), Half(3.f)}));
  expect_close(run_op("Elu", {Tensor::scalar(BFloat16(-1.f))}),
               Tensor::scalar(BFloat16(-0.632f)));
}

TEST_CASE("activation gradients refuse inputs of different shapes") {
  for (const char* op :
       {"ReluGrad", "Relu6Grad", "EluGrad", "LeakyReluGrad", "SoftplusGrad"})
    expect_error(run_op(op, {floats({1, 2}), floats({1})}),
                 Code::kInvalidArgument, "one shape");
}

TEST_CASE("softmax is taken along the last dimension") {
  const Tensor x = matrix(2, {1, 2, 3, 1000, 1000, 1000});
  expect_close(run_op("Softmax", {x}),
               matrix(2, {0.09003057f, 0.24472848f, 0.66524088f, 1 / 3.0f,
                          1 / 3.0f, 1 / 3.0f}));
  const float third = -std::log(3.0f);
  expect_close(
      run_op("LogSoftmax", {x}),
      matrix(2, {-2.4076059f, -1.4076059f, -0.4076059f, third, third, third}));
  expect_close(run_op("Softmax", {floats({5})}), floats({1}));
  expect_close(
      run_op("Softmax", {Tensor::of<Half>({1, 1, 2}, {Half(1.f), Half(1.f)})}),
      Tensor::of<Half>({1, 1, 2}, {Half(.5f), Half(.5f)}));
}

TEST_CASE("softmax of nothing is nothing, of infinities it is NaN") {
  for (const Shape& shape : {Shape{0, 2}, Shape{2, 0}}) {
    const Tensor empty = Tensor::make(DataType::kFloat, shape);
    expect_close(run_op("Softmax", {empty}), empty);
    expect_close(run_op("LogSoftmax", {empty}), empty);
  }
  expect_close(run_op("Softmax", {floats({-kInf, -kInf})}),
               floats({kNaN, kNaN}));
  expect_close(run_op("Softmax", {floats({-kInf, 0})}), floats({0, 1}));
  expect_error(run_op("Softmax", {Tensor::scalar(1.0f)}),
               Code::kInvalidArgument, "scalar");
}

TEST_CASE("long rows of softmax sum to one") {
  Tensor x = Tensor::make(DataType::kDouble, {3, 1000});
  for (int64_t i = 0; i < 3000; ++i)
    x.mutable_data<double>()[i] = double(i * 7919 % 1000) / 100;
  const auto y = run_op("Softmax", {x});
  REQUIRE(y.ok());
  for (int64_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 1000; ++i)
      sum += (*y)[0].data<double>()[row * 1000 + i];
    CHECK(sum == doctest::Approx(1));
  }
}

TEST_CASE("the cross entropy comes with its gradient, and broadcasts") {
  const char* op = "SoftmaxCrossEntropyWithLogits";
  const auto two =
      run_op(op, {matrix(1, {1, 2, 3}), matrix(2, {0, 1, 0, .5f, .25f, .25f})});
  REQUIRE(two.ok());
  expect_close((*two)[0], floats({1.4076059f, 1.6576059f}));
  expect_close((*two)[1],
               matrix(2, {0.09003057f, -0.75527155f, 0.66524094f, -0.40996942f,
                          -0.00527152f, 0.41524094f}),
               1e-6);
  const auto columns = run_op(op, {matrix(2, {1, 3, 1, 2}), matrix(2, {0, 1})});
  REQUIRE(columns.ok());
  expect_close((*columns)[0], floats({0, 1.6265233f}));
  expect_close(run_op(op, {Tensor::make(DataType::kFloat, {3, 0}),
                           Tensor::make(DataType::kFloat, {3, 0})}),
               floats({0, 0, 0}));
  // A scalar is the same for all classes: softmax(x) does not depend on it.
  const auto same = run_op(op, {Tensor::scalar(3.0f), matrix(2, {0, 1, 0, 0})});
  REQUIRE_MESSAGE(same.ok(), same.status().to_string());
  expect_close((*same)[0], floats({0.6931472f, 0}));
  expect_close((*same)[1], matrix(2, {0.5f, -0.5f, 0.5f, 0.5f}));
  const auto labels = run_op(op, {matrix(1, {1, 3}), Tensor::scalar(0.5f)});
  REQUIRE_MESSAGE(labels.ok(), labels.status().to_string());
  expect_close((*labels)[0], floats({1.126928f}));
  expect_error(run_op(op, {Tensor::scalar(3.0f), floats({0, 1})}),
               Code::kInvalidArgument, "[batch, classes]");
  expect_error(run_op(op, {floats({1, 3}), floats({0, 1})}),
               Code::kInvalidArgument, "[batch, classes]");
  expect_error(run_op(op, {matrix(1, {1, 3}), matrix(1, {0, 1, 2})}),
               Code::kInvalidArgument, "[batch, classes]");
}

TEST_CASE("the sparse cross entropy takes one label per row") {
  const char* op = "SparseSoftmaxCrossEntropyWithLogits";
  const Tensor x = matrix(2, {1, 2, 3, 4, 5, 6});
  const auto y = run_op(op, {x, Tensor::vector<int32_t>({0, 2})});
  REQUIRE(y.ok());
  expect_close((*y)[0], floats({2.4076059f, 0.40760595f}));
  expect_close((*y)[1],
               matrix(2, {-0.90996945f, 0.24472848f, 0.66524094f, 0.09003057f,
                          0.24472848f, -0.33475906f}),
               1e-6);
  const auto refused = [&](const Tensor& logits, const Tensor& labels,
                           const char* text) {
    expect_error(run_op(op, {logits, labels}), Code::kInvalidArgument, text);
  };
  refused(x, Tensor::vector<int32_t>({0, 3}), "label 3 of row 1");
  refused(x, Tensor::vector<int64_t>({0, -1}), "label -1 of row 1");
  refused(x, Tensor::vector<int32_t>({0}), "not a vector of 2");
  refused(floats({1, 2}), Tensor::vector<int32_t>({0}), "not a matrix");
  refused(Tensor::make(DataType::kFloat, {2, 0}),
          Tensor::vector<int32_t>({0, 0}), "without a class");
}

TEST_CASE("a bias is added to the channels, wherever they are") {
  const Tensor x = Tensor::of<int32_t>({1, 2, 2}, {1, 2, 3, 4});
  const Tensor bias = Tensor::vector<int32_t>({10, 20});
  expect_close(run_op("BiasAdd", {x, bias}),
               Tensor::of<int32_t>({1, 2, 2}, {11, 22, 13, 24}));
  expect_close(run_op("BiasAdd", {x, bias}, {{"data_format", "NCHW"}}),
               Tensor::of<int32_t>({1, 2, 2}, {11, 12, 23, 24}));
  expect_close(run_op("BiasAddV1", {x, bias}),
               Tensor::of<int32_t>({1, 2, 2}, {11, 22, 13, 24}));
  expect_close(run_op("BiasAddGrad", {x}), Tensor::vector<int32_t>({4, 6}));
  expect_close(run_op("BiasAddGrad", {x}, {{"data_format", "NCHW"}}),
               Tensor::vector<int32_t>({3, 7}));
  expect_close(run_op("BiasAddGrad", {Tensor::make(DataType::kFloat, {0, 3})}),
               floats({0, 0, 0}));
}

TEST_CASE("the gradient of a bias sums over everything else") {
  for (const Shape& shape :
       {Shape{1, 5}, Shape{4, 1}, Shape{1, 1}, Shape{6, 300}, Shape{2, 3, 4, 5},
        Shape{5, 1, 7}, Shape{1, 4, 3}}) {
    Tensor x = Tensor::make(DataType::kDouble, shape);
    for (int64_t i = 0; i < x.num_elements(); ++i)
      x.mutable_data<double>()[i] = double(i % 17);
    for (bool first : {false, true}) {
      INFO(shape.to_string(), " ", first);
      Tensor axes = Tensor::make(DataType::kInt32, {shape.rank() - 1});
      int channel = first ? 1 : shape.rank() - 1, n = 0;
      for (int i = 0; i < shape.rank(); ++i)
        if (i != channel) axes.mutable_data<int32_t>()[n++] = i;
      const auto expected = run_op("Sum", {x, axes});
      REQUIRE(expected.ok());
      expect_close(run_op("BiasAddGrad", {x},
                          {{"data_format", first ? "NCHW" : "NHWC"}}),
                   (*expected)[0]);
    }
  }
}

TEST_CASE("a bias that does not fit is refused") {
  const auto refused = [](const Tensor& x, const Tensor& bias,
                          const char* text) {
    expect_error(run_op("BiasAdd", {x, bias}), Code::kInvalidArgument, text);
  };
  refused(floats({1, 2}), floats({1, 2}), "fewer than two");
  refused(matrix(1, {1, 2}), floats({1}), "not a vector of 2");
  refused(matrix(1, {1, 2}), matrix(1, {1, 2}), "not a vector of 2");
  expect_error(run_op("BiasAddGrad", {floats({1})}), Code::kInvalidArgument,
               "fewer than two");
}

TEST_CASE("InTopK: a target is among the best k unless k others are better") {
  const Tensor x = matrix(4, {1, 2, 2, kNaN, 1, 2, 3, 2, kInf, 1, 2, 3});
  const auto run = [&](std::initializer_list<int32_t> targets, int32_t k) {
    return run_op("InTopKV2",
                  {x, Tensor::vector<int32_t>(targets), Tensor::scalar(k)});
  };
  expect_close(run({2, 1, 0, 7}, 1),
               Tensor::vector<bool>({true, false, false, false}));
  expect_close(run({0, 1, 0, 0}, 3),
               Tensor::vector<bool>({true, false, false, true}));
  expect_close(run({0, 1, 0, -1}, 2),
               Tensor::vector<bool>({false, false, false, false}));
  expect_close(run({1, 1, 0, 2}, 0),
               Tensor::vector<bool>({false, false, false, false}));
  expect_close(
      run_op("InTopK", {x, Tensor::vector<int64_t>({1, 1, 0, 2})}, {{"k", 1}}),
      Tensor::vector<bool>({true, false, false, true}));
  expect_error(run({1, 2}, 1), Code::kInvalidArgument, "not a vector of 4");
}

}  // namespace
}  // namespace tagflow::devices
