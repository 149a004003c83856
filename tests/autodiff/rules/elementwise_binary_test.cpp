#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;
using Reals = std::vector<double>;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of equal shapes, and broadcast in both directions.
void check_binary(const char* op, double low, double high, double low_y,
                  double high_y, int line = __builtin_LINE()) {
  const Function f = op_of(op);
  const auto check = [&](const Dims& x, const Dims& y) {
    check_gradients(f, {values(x, low, high), values(y, low_y, high_y)}, {},
                    line);
  };
  check({2, 3}, {2, 3});
  check({2, 3}, {3});
  check({}, {2, 2});
  check({2, 1}, {1, 3});
}

void check_complex_binary(const char* op, int line = __builtin_LINE()) {
  check_gradients(
      op_of(op),
      {complex_values({2, 2}, 0.5, 1.5), complex_values({2}, 0.3, 1.2)}, {},
      line);
}

// The gradients of the op's result by its two vectors.
std::vector<Reals> gradients_at(const char* op, Reals x, Reals y) {
  std::vector<Reals> results;
  for (const Tensor& gradient :
       gradients_of(op_of(op), {Tensor::of<double>({int64_t(x.size())}, x),
                                Tensor::of<double>({int64_t(y.size())}, y)})) {
    const auto all = gradient.flat<double>();
    results.emplace_back(all.begin(), all.end());
  }
  return results;
}

}  // namespace

TEST_CASE("sums and products have gradients by both operands") {
  check_binary("Add", -1, 1, -1, 1);
  check_binary("AddV2", -1, 1, -1, 1);
  check_binary("Sub", -1, 1, -1, 1);
  check_binary("Mul", -1, 1, -1, 1);
  check_binary("MulNoNan", -1, 1, 0.3, 1);
  check_binary("RealDiv", -1, 1, 0.5, 2);
  check_binary("Div", -1, 1, 0.5, 2);
  check_binary("DivNoNan", -1, 1, 0.5, 2);
  check_binary("SquaredDifference", -1, 1, -1, 1);
}

TEST_CASE("remainders have gradients between their jumps") {
  check_binary("FloorMod", -0.9, -0.1, 1, 2);
  check_binary("FloorMod", 2.1, 2.9, 1, 1.04);
  check_binary("Mod", -0.9, -0.1, 1, 2);
  check_binary("TruncateMod", 2.1, 2.9, 1, 1.04);
}

TEST_CASE("powers, logarithms and angles have gradients by both operands") {
  check_binary("Pow", 0.5, 2, -2, 2);
  check_binary("Xlogy", 0.2, 1, 0.5, 2);
  check_binary("Xlog1py", 0.2, 1, -0.5, 2);
  check_binary("Xdivy", 0.2, 1, 0.5, 2);
  check_binary("Atan2", 0.2, 1, -1, 1);
  check_binary("Atan2", -1, -0.2, -1, 1);
  check_gradients(op_of("NextAfter"), {values({2, 3}), values({3}, 2, 3)},
                  {.order = 1, .tolerance = 1e-5});
}

TEST_CASE("gradients of complex operands are conjugated") {
  for (const char* op :
       {"Add", "AddV2", "Sub", "Mul", "MulNoNan", "RealDiv", "Div", "DivNoNan",
        "SquaredDifference", "Pow", "Xlogy", "Xlog1py", "Xdivy"}) {
    CAPTURE(op);
    check_complex_binary(op);
  }
}

TEST_CASE("powers with a constant exponent have derivatives of any order") {
  for (const double exponent : {0., 1., 2., 3., 2.5, -1., -2., 0.5}) {
    CAPTURE(exponent);
    check_gradients(op_with("Pow", {exponent}), {values({3}, 0.5, 2)},
                    {.order = 3});
  }
  // Natural powers have none that is infinite at 0.
  const Tensor zero = Tensor::vector<double>({0, 0.5});
  for (const double exponent : {0., 1., 2., 3.})
    check_gradients(op_with("Pow", {exponent}), {zero}, {.order = 4});
}

TEST_CASE("the slope of a power with a constant exponent depends on it") {
  // y = x^w: d2y / dx dw = x^(w-1) (1 + w ln x), in both orders.
  for (const double w_is : {0., 1., 2., 3.}) {
    CAPTURE(w_is);
    graph::Graph graph;
    const graph::Scope s(graph);
    const graph::Output x = ops::placeholder(s, DataType::kDouble, Shape{});
    const graph::Output w = ops::constant(s, w_is);
    const graph::Output y = ops::pow(s, x, w);
    const graph::Output by_x = dense_gradients(s, {y}, {x})[0];
    const graph::Output by_w = dense_gradients(s, {y}, {w})[0];
    const graph::Output by_xw = dense_gradients(s, {by_x}, {w})[0];
    const graph::Output by_wx = dense_gradients(s, {by_w}, {x})[0];
    const Reals both =
        numbers(s, {by_xw, by_wx}, {{x.name(), Tensor::scalar(2.)}});
    const double expected = std::pow(2, w_is - 1) * (1 + w_is * std::log(2));
    CHECK(both[0] == doctest::Approx(expected));
    CHECK(both[1] == doctest::Approx(expected));
  }
}

TEST_CASE("natural powers that are not known are differentiated at 0 as well") {
  const auto power = [](const graph::Scope& s, const graph::Outputs& x) {
    // Nothing is known of what Round gives.
    return ops::pow(s, x[0], ops::round(s, ops::stop_gradient(s, x[1])));
  };
  check_gradients(power,
                  {Tensor::vector<double>({0, 0, 0, 0}),
                   Tensor::vector<double>({0, 1, 2, 3})},
                  {.order = 4});
}

TEST_CASE("x log y and x / y have their derivatives where x is 0") {
  const Reals x = {0, 0, 0, 2}, y = {2, 0, -1, 2};
  const auto check_log = [](const Reals& slopes) {
    CHECK(slopes[0] == doctest::Approx(std::log(2)));
    CHECK(slopes[1] == 0);
    CHECK(slopes[2] == 0);
    CHECK(slopes[3] == doctest::Approx(std::log(2)));
  };
  check_log(gradients_at("Xlogy", x, y)[0]);
  CHECK(gradients_at("Xlogy", x, y)[1] == Reals{0, 0, 0, 1});
  check_log(gradients_at("Xlog1py", x, {1, -1, -2, 1})[0]);
  CHECK(gradients_at("Xdivy", x, {2, 0, -1, 2})[0] == Reals{0.5, 0, -1, 0.5});
  CHECK(gradients_at("Xdivy", x, {2, 0, -1, 2})[1] == Reals{0, 0, 0, -0.5});
  for (const char* op : {"Xlogy", "Xlog1py", "Xdivy"}) {
    CAPTURE(op);
    check_gradients(
        [op](const graph::Scope& s, const graph::Outputs& in) {
          return graph::Outputs(s.op(op, {in[0], ops::add(s, in[0], 2)}));
        },
        {Tensor::vector<double>({0, 0.5})}, {.order = 3});
  }
}

TEST_CASE("a power counts as constant in its exponent without a logarithm") {
  const auto grads = gradients_at("Pow", {0, -2, 0}, {2, 3, 0});
  CHECK(grads[0] == Reals{0, 12, 0});
  CHECK(grads[1] == Reals{0, 0, 0});
}

TEST_CASE("the first of equal operands is their maximum and their minimum") {
  check_gradients(op_of("Maximum"), {values({2, 3}), values({3})});
  check_gradients(op_of("Minimum"), {values({2, 3}), values({})});
  for (const char* op : {"Maximum", "Minimum"}) {
    const auto grads = gradients_at(op, {2, 2}, {2, 2});
    CHECK(grads[0] == Reals{1, 1});
    CHECK(grads[1] == Reals{0, 0});
  }
}

TEST_CASE("gradients of DivNoNan, MulNoNan, Xlogy and Xdivy have no NaN") {
  const auto quotient = gradients_at("DivNoNan", {1, 3}, {0, 2});
  CHECK(quotient[0] == Reals{0, 0.5});
  CHECK(quotient[1] == Reals{0, -0.75});
  const auto product = gradients_at("MulNoNan", {kInfinity, 3}, {0, 2});
  CHECK(product[0] == Reals{0, 2});
  CHECK(product[1] == Reals{kInfinity, 3});
  for (const char* op : {"Xlogy", "Xdivy"}) {
    const auto grads = gradients_at(op, {0, 0}, {0, 1});
    CHECK(grads[0] == Reals{0, op == std::string("Xdivy") ? 1. : 0.});
    CHECK(grads[1] == Reals{0, 0});
  }
  const auto xlog1py = gradients_at("Xlog1py", {0, 0}, {-1, 0});
  CHECK(xlog1py[0] == Reals{0, 0});
  CHECK(xlog1py[1] == Reals{0, 0});
}

TEST_CASE("each term of a sum of several has the sum's gradient") {
  const std::vector<Tensor> xs = {values({2, 3}), values({2, 3}),
                                  values({2, 3})};
  check_gradients(op_of("AddN"), xs);
  check_gradients(op_of("AccumulateNV2", {{"shape", PartialShape()}}), xs);
}

TEST_CASE("Select gives a gradient of zero to elements not chosen") {
  const Tensor x = values({2, 3}), y = values({2, 3}), row = values({3});
  const Tensor rows = Tensor::vector<bool>({true, false});
  const Tensor columns = Tensor::vector<bool>({true, false, true});
  const auto choose = [](const char* op, Tensor condition) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& xs) {
      return s.op(op, {condition, ops::square(s, xs[0]), ops::exp(s, xs[1])});
    };
  };
  check_gradients(choose("Select", rows), {x, y});
  check_gradients(choose("Select", Tensor::scalar(true)), {x, y});
  check_gradients(choose("Select", columns), {row, row});
  check_gradients(choose("SelectV2", columns), {x, y});
  check_gradients(choose("SelectV2", columns), {x, row});
  check_gradients(choose("SelectV2", Tensor::scalar(false)), {values({}), row});
  // Also if the gradient is infinite.
  const auto grads = gradients_of(
      [=](const graph::Scope& s, const graph::Outputs& xs) {
        return ops::mul(s, ops::select(s, columns, xs[0], xs[1]), kInfinity);
      },
      {row, row});
  CHECK(identical(grads[0], Tensor::vector<double>({kInfinity, 0, kInfinity})));
  CHECK(identical(grads[1], Tensor::vector<double>({0, kInfinity, 0})));
}

TEST_CASE("clipped numbers are constant, and limits that clip are not") {
  const Tensor x = Tensor::vector<double>({-2, -0.5, 0.3, 3});
  check_gradients(op_of("ClipByValue"),
                  {x, Tensor::scalar(-1.0), Tensor::scalar(1.0)});
  check_gradients(op_of("ClipByValue"),
                  {x, values({4}, -1.2, -0.9), values({4}, 0.9, 1.2)});
}

TEST_CASE("operands in a loop are saved in each of its iterations") {
  using graph::Outputs;
  using graph::Scope;
  const auto check = [](const Function& f) {
    check_gradients(repeated(f), {values({2, 3}, 0.5, 1.5)});
  };
  const Tensor row = values({3}, 0.5, 1.5);
  check([=](const Scope& s, const Outputs& x) {
    return ops::maximum(s, ops::sin(s, x[0]), row);
  });
  check([](const Scope& s, const Outputs& x) {
    return ops::pow(s, x[0], ops::cos(s, x[0]));
  });
  check([](const Scope& s, const Outputs& x) {
    return ops::add(s, ops::floor_mod(s, 2.5, x[0]), 0.6);
  });
  check([](const Scope& s, const Outputs& x) {
    return ops::select(s, ops::less(s, x[0], 1), ops::exp(s, x[0]),
                       ops::real_div(s, 2, x[0]));
  });
}
