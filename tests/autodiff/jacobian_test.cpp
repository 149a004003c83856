// Jacobians, Hessians and Hessian-vector products.
#include "autodiff/jacobian.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/autodiff/evaluate.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::evaluate;

namespace {

Doubles elements(const Tensor& tensor) {
  return {tensor.flat<double>().begin(), tensor.flat<double>().end()};
}

// w -> w * w * ... by a loop, elementwise: x^4.
Output fourth_power(const Scope& s, const Output& x) {
  return while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::mul(in, v[1], x)};
      },
      {0, x})[1];
}

}  // namespace

TEST_CASE("a Jacobian has a gradient for each element of y") {
  for (const bool known : {true, false}) {
    Graph graph;
    const Scope s(graph);
    const Output x =
        ops::placeholder(s.named("x"), DataType::kDouble,
                         known ? PartialShape({3}) : PartialShape());
    const Output a =
        ops::constant(s, Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
    // y[i][0] = (sum of a[i][k] x[k])^2
    const Output y =
        ops::square(s, ops::matmul(s, a, ops::reshape(s, x, {3, 1})));
    const Tensor value = evaluate(
        s, {jacobian(s, y, x)}, {{"x", Tensor::vector<double>({1, 0, -1})}})[0];
    CHECK(value.shape() == Shape{2, 1, 3});
    // 2 (a x)[i] a[i][k], with a x = -2, -2.
    CHECK(elements(value) == Doubles{-4, -8, -12, -16, -20, -24});
  }
}

TEST_CASE("a Jacobian of a tensor without elements has none") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kDouble, PartialShape());
  const Tensor value =
      evaluate(s, {jacobian(s, ops::square(s, x), x)},
               {{"x", Tensor::make(DataType::kDouble, Shape{0, 2})}})[0];
  CHECK(value.shape() == Shape{0, 2, 0, 2});
}

TEST_CASE("a Jacobian by an x that y does not depend on is zeros") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, Tensor::vector<double>({1, 2}));
  const Output y = ops::constant(s, Tensor::vector<double>({1, 2, 3}));
  const Tensor value = evaluate(s, {jacobian(s, y, x)})[0];
  CHECK(value.shape() == Shape{3, 2});
  CHECK(elements(value) == Doubles(6, 0.0));
}

TEST_CASE("a Hessian of a loop is that of its last value") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, Tensor::vector<double>({1, 2}));
  // The sum of x^4, times the product of x.
  const Output y = ops::mul(s, ops::reduce_sum(s, fourth_power(s, x)),
                            ops::reduce_prod(s, x));
  const Output v = ops::constant(s, Tensor::vector<double>({1, 10}));
  const Tensor h = evaluate(s, hessian(s, y, {x}))[0];
  // y = a^5 b + a b^5
  const Doubles expected{20 * 2, 5 + 5 * 16, 5 + 5 * 16, 20 * 8};
  CHECK(h.shape() == Shape{2, 2});
  CHECK(elements(h) == expected);
  const Tensor product = evaluate(s, hessian_vector_product(s, y, {x}, {v}))[0];
  CHECK(elements(product) == Doubles{expected[0] + 10 * expected[1],
                                     expected[2] + 10 * expected[3]});
}

TEST_CASE("a Hessian times a vector mixes all xs") {
  // y = a b^2: (0 2b; 2b 2a)
  Graph graph;
  const Scope s(graph);
  const Output a = ops::constant(s, 3.0), b = ops::constant(s, 5.0);
  const Output y = ops::mul(s, a, ops::square(s, b));
  const Outputs product = hessian_vector_product(
      s, y, {a, b}, {ops::constant(s, 1.0), ops::constant(s, 100.0)});
  CHECK(testing::numbers(s, product) == Doubles{1000, 610});
  const Outputs half =
      hessian_vector_product(s, y, {a, b}, {ops::constant(s, 1.0), Output()});
  CHECK(testing::numbers(s, half) == Doubles{0, 10});
}

TEST_CASE("a Jacobian by a variable has its value's shape") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable w =
      ops::variable(s.named("w"), DataType::kDouble, PartialShape({2}));
  const Output init =
      ops::assign(s, w, ops::constant(s, Tensor::vector<double>({3, 4})));
  const Output y = ops::square(s, ops::read(s, w));
  const Outputs both{jacobian(s, y, w.handle), hessian(s, y, {w.handle})[0]};
  const std::vector<Tensor> values = evaluate(s, both, {}, {}, init);
  CHECK(elements(values[0]) == Doubles{6, 0, 0, 8});
  CHECK(elements(values[1]) == Doubles{2, 0, 0, 2});
}

TEST_CASE("a Jacobian can be differentiated, and made in a loop") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, Tensor::vector<double>({1, 2}));
  const Output j = jacobian(s, fourth_power(s, x), x);
  const Output third = jacobian(s, j, x);
  const Tensor value = evaluate(s, {third})[0];
  CHECK(value.shape() == Shape{2, 2, 2});
  CHECK(elements(value) == Doubles{12, 0, 0, 0, 0, 0, 0, 48});
  // Newton's method for x^2 = (4, 9), whose Jacobian is diagonal.
  const Output root = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 6); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output square = ops::square(in, v[1]);
        const Output slope = in.op("DiagPart", {jacobian(in, square, v[1])});
        const Output goal = ops::constant(in, Tensor::vector<double>({4, 9}));
        return {ops::add(in, v[0], 1),
                ops::sub(in, v[1],
                         ops::real_div(in, ops::sub(in, square, goal), slope))};
      },
      {0, x})[1];
  const Doubles roots = elements(evaluate(s, {root})[0]);
  CHECK(roots[0] == doctest::Approx(2.0));
  CHECK(roots[1] == doctest::Approx(3.0));
}

TEST_CASE("a Jacobian of a dead tensor is dead, and ends") {
  for (const bool taken : {false, true}) {
    Graph graph;
    const Scope s(graph);
    const Output x = ops::constant(s, Tensor::vector<double>({1, 2}));
    const Output flag = ops::placeholder(s.named("flag"), DataType::kBool,
                                         PartialShape::scalar());
    const OpResult ports = s.op("Switch", {x, flag});
    const Output then = jacobian(s, ops::square(s, ports[1]), ports[1]);
    const Output otherwise = jacobian(s, ops::exp(s, ports[0]), ports[0]);
    const Output either =
        s.op("Merge", {ops::zeros_like(s, otherwise), then})[0];
    const Tensor value =
        evaluate(s, {either}, {{"flag", Tensor::scalar(taken)}})[0];
    CHECK(elements(value) == (taken ? Doubles{2, 0, 0, 4} : Doubles(4, 0.0)));
  }
}
