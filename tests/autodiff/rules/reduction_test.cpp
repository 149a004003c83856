#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "graph/float16.h"
#include "tests/autodiff/rules/functions.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

// Along these axes, with the dimensions kept and without; and if the graph
// does not know the axes.
void check_reduction(const char* op, std::vector<int32_t> axes, const Tensor& x,
                     int line = __builtin_LINE()) {
  const Tensor known = Tensor::of<int32_t>({int64_t(axes.size())}, axes);
  for (const bool keep_dims : {false, true}) {
    const AttrMap attrs = {{"keep_dims", keep_dims}};
    check_gradients(op_with(op, {known}, attrs), {x}, {}, line);
    check_gradients(
        [=](const graph::Scope& s, const graph::Outputs& xs) {
          return s.op(op, {xs[0], ops::add(s, known, 0)}, attrs);
        },
        {x}, {}, line);
  }
}

void check_reduction(const char* op, double low, double high,
                     int line = __builtin_LINE()) {
  const Tensor x = values({2, 3, 2}, low, high);
  check_reduction(op, {0}, x, line);
  check_reduction(op, {1}, x, line);
  check_reduction(op, {-1}, x, line);
  check_reduction(op, {0, 2}, x, line);
  check_reduction(op, {2, -2, 0}, x, line);
  check_reduction(op, {}, x, line);
  check_gradients(op_with(op, {1}), {x}, {}, line);
  check_gradients(op_with(op, {Tensor::scalar<int64_t>(-3)}), {x}, {}, line);
  check_reduction(op, {}, values({}, low, high), line);
}

// The gradient of a reduction of a vector to a scalar.
std::vector<double> reduction_gradient(const char* op,
                                       std::vector<double> values) {
  const auto grads = gradients_of(
      op_with(op, {0}), {Tensor::of<double>({int64_t(values.size())}, values)});
  const auto all = grads[0].flat<double>();
  return {all.begin(), all.end()};
}

}  // namespace

TEST_CASE("sums and means spread their gradient") {
  check_reduction("Sum", -1, 1);
  check_reduction("Mean", -1, 1);
}

TEST_CASE("norms and products have gradients by each element") {
  check_reduction("EuclideanNorm", 0.5, 1);
  check_reduction("Prod", 0.5, 1.5);
}

TEST_CASE("Max and Min share their gradient among equal extremes") {
  check_reduction("Max", -1, 1);
  check_reduction("Min", -1, 1);
  CHECK(reduction_gradient("Max", {3, 1, 3, 2}) ==
        std::vector<double>{0.5, 0, 0.5, 0});
  CHECK(reduction_gradient("Min", {3, 1, 1, 1}) ==
        std::vector<double>{0, 1. / 3, 1. / 3, 1. / 3});
}

TEST_CASE("products have gradients at factors of zero") {
  const Tensor x =
      Tensor::of<double>({4, 3}, {2, 3, 4, 0, 3, 4, 0, 0, 4, 0, 0, 0});
  check_gradients(op_with("Prod", {1}), {x});
  check_gradients(op_with("Prod", {0}), {x});
  check_gradients(op_with("Prod", {1}),
                  {Tensor::of<double>({2, 2}, {0, 0, 0, 1})}, {.order = 3});
  // Of n zeros the derivative of order n is not zero. By each factor alone the
  // product is linear, so that large steps are as right as small ones.
  check_gradients(op_with("Prod", {1}),
                  {Tensor::of<double>({2, 3}, {0, 0, 0, 0, 0, 2})},
                  {.order = 4, .step = 0.1});
  check_gradients(op_with("Prod", {0}), {Tensor::vector<double>({0, 0, 0, 0})},
                  {.order = 4, .step = 0.1, .unknown_shapes = false});
  CHECK(reduction_gradient("Prod", {2, 0, 3}) == std::vector<double>{0, 6, 0});
}

TEST_CASE("reductions of complex numbers have gradients") {
  for (const char* op : {"Sum", "Mean", "Prod", "EuclideanNorm"}) {
    CAPTURE(op);
    check_gradients(op_with(op, {1}), {complex_values({2, 3})});
  }
}

TEST_CASE("the gradient of a norm of zeros is zero") {
  CHECK(reduction_gradient("EuclideanNorm", {0, 0}) ==
        std::vector<double>{0, 0});
}

TEST_CASE("half the sum of squares has its elements for a gradient") {
  check_gradients(op_of("L2Loss"), {values({2, 3})});
}

TEST_CASE("a half-precision mean of more elements than a half can count") {
  const auto grads = gradients_of(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return ops::mul(s, ops::reduce_mean(s, x[0]), 1000);
      },
      {Tensor::make(DataType::kHalf, {100000})});
  CHECK(float(*grads[0].data<Half>()) == doctest::Approx(0.01).epsilon(1e-3));
}

TEST_CASE("Mean of an empty tensor has a gradient of its shape") {
  const auto grads = gradients_of(op_with("Mean", {0}),
                                  {Tensor::make(DataType::kDouble, {0, 3})});
  CHECK(grads[0].shape() == Shape{0, 3});
}

TEST_CASE("reductions in a loop save what they need of each iteration") {
  using graph::Outputs;
  using graph::Scope;
  const auto check = [](const char* op) {
    check_gradients(repeated([op](const Scope& s, const Outputs& x) {
                      const Output y = ops::sin(s, s.op(op, {x[0], 0}));
                      return ops::add(s, ops::mul(s, x[0], y), 0.3);
                    }),
                    {values({2, 3}, 0.5, 1.5)});
  };
  for (const char* op :
       {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"}) {
    CAPTURE(op);
    check(op);
  }
}

TEST_CASE("Bincount has gradients by the weights") {
  const Tensor vector = Tensor::vector<int32_t>({1, 0, 1, 7});
  const Tensor matrix = Tensor::of<int32_t>({2, 3}, {1, 0, 1, 2, 5, 2});
  for (const char* op : {"Bincount", "DenseBincount"}) {
    check_squares(outputs_of(op, 2, {vector, 3}, {0}), {values({4})});
    check_squares(outputs_of(op, 2, {matrix, 3}, {0}), {values({2, 3})});
    check_squares(outputs_of(op, 2, {matrix, 0}, {0}), {values({2, 3})});
    check_squares(outputs_of(op, 2, {vector, 3}, {0}), {values({0})});
  }
}
