// Activation functions, their gradient ops, and biases.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

// On both sides of the kinks at 0 and 6, and not near them.
Tensor around_kinks() {
  return Tensor::vector<double>({-2.5, -0.3, 0.2, 1.7, 5.1, 7.3});
}

std::vector<double> slopes_at(const char* op, const std::vector<double>& at,
                              AttrMap attrs = {}) {
  const Tensor x = Tensor::of<double>({int64_t(at.size())}, at);
  const Tensor slopes = gradients_of(op_of(op, std::move(attrs)), {x})[0];
  return {slopes.flat<double>().begin(), slopes.flat<double>().end()};
}

}  // namespace

TEST_CASE("activations have gradients of any order") {
  for (const char* op : {"Sigmoid", "Tanh", "Relu", "Relu6", "Elu", "Selu",
                         "Softplus", "Softsign"}) {
    CAPTURE(op);
    check_gradients(op_of(op), {around_kinks()}, {.order = 3});
  }
}

TEST_CASE("LeakyRelu has gradients for slopes of either sign") {
  for (float alpha : {0.2f, 0.0f, -0.5f})
    check_gradients(op_of("LeakyRelu", {{"alpha", alpha}}), {around_kinks()});
}

TEST_CASE("gradient ops of activations have gradients by both inputs") {
  for (const char* op : {"ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad",
                         "SoftplusGrad", "SoftsignGrad"}) {
    CAPTURE(op);
    check_gradients(op_of(op), {values({6}), around_kinks()});
  }
  check_gradients(op_of("LeakyReluGrad", {{"alpha", 0.3f}}),
                  {values({6}), around_kinks()});
}

TEST_CASE("slopes of activations are exact where their results are limits") {
  const auto check = [](const char* op, double x, double slope) {
    CAPTURE(op);
    CHECK(slopes_at(op, {x})[0] ==
          doctest::Approx(slope).epsilon(1e-12).scale(0));
    const Tensor narrow = Tensor::vector<float>({float(x)});
    CHECK(gradients_of(op_of(op), {narrow})[0].data<float>()[0] ==
          doctest::Approx(slope).epsilon(1e-5).scale(0));
  };
  check("Elu", -40, std::exp(-40.0));
  check("Selu", -40, 1.0507009873554805 * 1.6732632423543773 * std::exp(-40.0));
  check("Sigmoid", 40, std::exp(-40.0));
  check("Sigmoid", -40, std::exp(-40.0));
  check("Tanh", 30, 4 * std::exp(-60.0));
  check("Tanh", -30, 4 * std::exp(-60.0));
  // The other side does not overflow.
  for (const char* op : {"Elu", "Selu", "Sigmoid", "Tanh"})
    check_gradients(op_of(op), {Tensor::vector<double>({-800, 800})});
}

TEST_CASE("activations have TensorFlow's slopes at kinks") {
  CHECK(slopes_at("Relu", {0, -0.0}) == std::vector<double>{0, 0});
  CHECK(slopes_at("Relu6", {0, 6}) == std::vector<double>{0, 0});
  CHECK(slopes_at("LeakyRelu", {0}, {{"alpha", 0.5f}}) ==
        std::vector<double>{0.5});
  CHECK(slopes_at("Softsign", {0}) == std::vector<double>{1});
}

TEST_CASE("the curvature of Softplus keeps its digits far out") {
  const Function f = [](const graph::Scope& s, const graph::Outputs& x) {
    return s.op("SoftplusGrad", {ops::ones_like(s, x[0]), x[0]});
  };
  const Tensor x = Tensor::vector<double>({-50, 50, -800, 800});
  const auto curvatures = gradients_of(f, {x})[0].flat<double>();
  CHECK(curvatures[0] == doctest::Approx(1.9287498479639178e-22));
  CHECK(curvatures[1] == doctest::Approx(1.9287498479639178e-22));
  CHECK(curvatures[2] == 0);
  CHECK(curvatures[3] == 0);
}

TEST_CASE("BiasAdd has gradients in both formats") {
  check_gradients(op_of("BiasAdd"), {values({2, 3}), values({3})});
  check_gradients(op_of("BiasAdd", {{"data_format", "NCHW"}}),
                  {values({2, 3, 2, 2}), values({3})});
  check_gradients(op_of("BiasAddV1"), {values({2, 2, 3}), values({3})});
}

TEST_CASE("BiasAddGrad has gradients in both formats") {
  check_gradients(op_of("BiasAddGrad"), {values({2, 3, 2})});
  check_gradients(op_of("BiasAddGrad", {{"data_format", "NCHW"}}),
                  {values({2, 3, 2})});
}
