// Forward mode, in closed form.
#include <doctest/doctest.h>

#include "autodiff/jvp.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/programs.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::cube_by_array;
using tagflow::autodiff::testing::doubled;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::evaluate;
using tagflow::autodiff::testing::less_than;
using tagflow::autodiff::testing::nested_power;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::power;
using tagflow::autodiff::testing::power_where;
using tagflow::autodiff::testing::product_of_reads;
using tagflow::autodiff::testing::ScalarProgram;
using tagflow::autodiff::testing::tripled_and_squared;

namespace {

struct Program : ScalarProgram {
  // Along a tangent of 1.
  Output slope(const Output& y, const Output& x) {
    return jvp(s, {y}, {x}, {ops::ones_like(s, x)},
               {.zeros_if_unconnected = true, .check_liveness = true})[0];
  }
  Output grad(const Output& y, const Output& x) {
    return dense_gradients(s, {y}, {x}, {.zeros_if_unconnected = true})[0];
  }
  size_t count(std::string_view op) const {
    size_t found = 0;
    for (const Node* node : graph.nodes()) found += node->op() == op;
    return found;
  }
};

}  // namespace

TEST_CASE("forward mode of a loop is in the loop, to any order") {
  for (const int64_t window : {1, 32}) {
    Program p;
    const Output x = p.number(2, "x"), w = p.number(3, "w");
    const Output y = power(p.s, x, w, 3, window);
    Outputs all{y, p.slope(y, x)};
    Output higher = y;
    for (int order = 1; order <= 4; ++order)
      all.push_back(higher = p.slope(higher, w));
    CHECK(numbers(p.s, all) == Doubles{54, 27, 54, 36, 12, 0});
    CHECK(p.count("PersistentStackPush") == 0);
    CHECK(p.count("LoopCond") == 1);
  }
}

TEST_CASE("forward and reverse mode may be made of one another") {
  Program p;
  const Output x = p.number(2, "x"), w = p.number(3, "w");
  const Output y = power(p.s, x, w, 3);
  const Output forward = p.slope(y, w), reverse = p.grad(y, w);
  const Outputs all{p.slope(reverse, w), p.grad(forward, w),
                    p.slope(p.grad(forward, w), w),
                    p.grad(p.slope(reverse, w), w)};
  CHECK(numbers(p.s, all) == Doubles{36, 36, 12, 12});
}

TEST_CASE("a loop without a trip has the tangent of its variable") {
  Program p;
  const Output x = p.number(2, "x"), w = p.number(3, "w");
  const Output y = power(p.s, x, w, 0);
  CHECK(numbers(p.s, {p.slope(y, x), p.slope(y, w)}) == Doubles{1, 0});
}

TEST_CASE("tangents of a loop in a loop are made once") {
  Program p;
  const Output x = p.number(1, "x"), w = p.number(2, "w");
  const Output y = nested_power(p.s, x, w);
  const Output first = p.slope(y, w);
  const Output second = p.slope(first, w);
  CHECK(numbers(p.s, {y, first, second, p.grad(first, w),
                      p.slope(p.grad(y, w), w)}) ==
        Doubles{64, 192, 480, 480, 480});
  CHECK(numbers(p.s, {p.slope(y, x)}) == Doubles{64});
}

TEST_CASE("a branch that is not taken has no part in the tangent") {
  for (const bool taken : {false, true}) {
    Program p;
    const Output x = p.number(2, "x"), w = p.number(3, "w");
    const Output flag = p.flag();
    const Output y = power_where(p.s, flag, x, w);
    const Outputs slopes{p.slope(y, x), p.slope(y, w)};
    CHECK(numbers(p.s, slopes, {{"flag", Tensor::scalar(taken)}}) ==
          (taken ? Doubles{27, 54} : Doubles{1, 0}));
  }
}

TEST_CASE("a conditional in a loop has tangents of what it chooses") {
  Program p;
  const Output x = p.number(2, "x");
  const Output y = tripled_and_squared(p.s, x);
  const Output first = p.slope(y, x);
  const Output second = p.slope(first, x);
  const Output third = p.slope(second, x);
  CHECK(numbers(p.s, {y, first, second, third}) == Doubles{108, 108, 54, 0});
}

TEST_CASE("a variable of a loop may get its tangent in the loop alone") {
  // a, b = b, b + x: of a constant a, and the tangent comes a trip later.
  Program p;
  const Output x = p.number(2, "x");
  const Outputs last =
      while_loop(p.s, less_than(3),
                 [&](const Scope& in, const Outputs& v) -> Outputs {
                   return {ops::add(in, v[0], 1), v[2], ops::add(in, v[2], x)};
                 },
                 {0, p.number(5, "a"), p.number(7, "b")});
  CHECK(numbers(p.s, {last[1], last[2], p.slope(last[1], x),
                      p.slope(last[2], x)}) == Doubles{11, 13, 2, 3});
}

TEST_CASE("each read of a variable has the variable's tangent") {
  Program p;
  const ops::Variable w =
      ops::variable(p.s.named("w"), DataType::kDouble, PartialShape::scalar());
  const Output init = ops::assign(p.s, w, 1.0);
  const Output y = product_of_reads(p.s, w);
  const Output slope = jvp(p.s, {y}, {w.handle}, {p.number(1, "one")})[0];
  CHECK(numbers(p.s, {y, slope}, {}, {}, init) == Doubles{8, 14});
}

TEST_CASE("tangents of arrays and stacks come back with what was written") {
  for (const int64_t window : {1, 32}) {
    Program p;
    const Output x = p.number(2, "x");
    const Output y = cube_by_array(p.s, x, window);
    const Output first = p.slope(y, x);
    const Output second = p.slope(first, x);
    const Output third = p.slope(second, x);
    CHECK(numbers(p.s, {first, second, third}) == Doubles{12, 12, 6});
  }
}

TEST_CASE("a tangent may be made in the body of a loop") {
  Program p;
  const Output last = while_loop(
      p.s, less_than(4),
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output cube = ops::mul(in, v[1], ops::mul(in, v[1], v[1]));
        const Output y = ops::maximum(in, cube, 0.5);
        const Output slope = jvp(in, {y}, {v[1]}, {ops::constant(in, 1.0)})[0];
        // Newton's step towards the cube root of 8.
        const Output next =
            ops::sub(in, v[1], ops::real_div(in, ops::sub(in, y, 8.0), slope));
        return {ops::add(in, v[0], 1), next};
      },
      {0, ops::constant(p.s, 3.0)})[1];
  CHECK(numbers(p.s, {last})[0] == doctest::Approx(2.0).epsilon(1e-3));
}

TEST_CASE("an x that depends on another has both tangents") {
  Program p;
  const Output x = p.number(3, "x");
  const Output z = ops::square(p.s, x);
  const Output y = ops::mul(p.s, z, 10.0);
  CHECK(numbers(p.s, jvp(p.s, {y, z}, {x, z},
                         {p.number(1, "dx"), p.number(100, "dz")})) ==
        Doubles{1060, 106});
}

TEST_CASE("a tangent is live if its tensor is, whatever it is made of") {
  // Only the constant of the sum is in the branch.
  for (const bool taken : {false, true}) {
    Program p;
    const Output x = p.number(2, "x");
    const Output flag = p.flag();
    const OpResult one = p.s.op("Switch", {ops::constant(p.s, 1.0), flag});
    const Output then = ops::add(p.s, x, one[1]);
    const Output otherwise = ops::mul(p.s, x, one[0]);
    const Output y = p.s.op("Merge", {otherwise, ops::square(p.s, then)})[0];
    CHECK(numbers(p.s, {y, p.slope(y, x)}, {{"flag", Tensor::scalar(taken)}}) ==
          (taken ? Doubles{9, 6} : Doubles{2, 1}));
  }
}

TEST_CASE("an x of a branch has a tangent from outside if it is live") {
  for (const bool taken : {false, true}) {
    Program p;
    const Output x = p.number(2, "x");
    const Output flag = p.flag();
    const OpResult ports = p.s.op("Switch", {x, flag});
    const Output then = ops::square(p.s, ports[1]);
    const Output slope = jvp(p.s, {then}, {ports[1]}, {p.number(1, "one")},
                             {.check_liveness = true})[0];
    const Output either = p.s.op("Merge", {ports[0], slope})[0];
    CHECK(numbers(p.s, {either}, {{"flag", Tensor::scalar(taken)}}) ==
          (taken ? Doubles{4} : Doubles{2}));
  }
}

TEST_CASE("tangents of complex tensors are not conjugated") {
  using Complex = std::complex<double>;
  Program p;
  const Output z = ops::constant(p.s, Tensor::scalar(Complex(1, 2)));
  const Output dz = ops::constant(p.s, Tensor::scalar(Complex(0, 1)));
  const Output square = ops::mul(p.s, z, z);
  const Output size = p.s.op("ComplexAbs", {z}, {{"Tout", DataType::kDouble}});
  const Outputs made = jvp(p.s, {square, size, ops::exp(p.s, z)}, {z}, {dz});
  const std::vector<Tensor> values = evaluate(p.s, made);
  CHECK(values[0].item<Complex>().value() == Complex(-4, 2));
  CHECK(values[1].item<double>().value() ==
        doctest::Approx(2 / std::sqrt(5.0)));
  const Complex exp = values[2].item<Complex>().value();
  const Complex expected = Complex(0, 1) * std::exp(Complex(1, 2));
  CHECK(std::abs(exp - expected) < 1e-12);
}

TEST_CASE("forward mode removes the nodes that it added and does not need") {
  Program p;
  const Output x = p.number(2, "x");
  const Output y = ops::square(p.s, x);
  const size_t before = p.graph.size();
  CHECK_FALSE(jvp(p.s, {ops::constant(p.s, 1.0)}, {x}, {x})[0].valid());
  CHECK(p.graph.size() == before + 1);
  const Output slope = jvp(p.s, {y}, {x}, {x})[0];
  CHECK(p.count("ZerosLike") == 0);
  CHECK(numbers(p.s, {slope}) == Doubles{8});
}

TEST_CASE("forward mode says why a tensor has no tangent") {
  Program p;
  const Output x = p.number(2, "x");
  const auto says = [&](const char* text) {
    INFO(p.s.status().to_string());
    CHECK(p.s.status().to_string().find(text) != std::string::npos);
  };
  SUBCASE("a tangent of another type") {
    jvp(p.s, {ops::square(p.s, x)}, {x}, {ops::constant(p.s.named("t"), 1.0f)});
    says("tangent 0 (\"t:0\") is float[], but x \"x:0\" is double[]");
  }
  SUBCASE("a tangent of another shape") {
    jvp(p.s, {ops::square(p.s, x)}, {x},
        {ops::constant(p.s, Tensor::of<double>({2}, {1, 2}))});
    says("is double[2], but x \"x:0\" is double[]");
  }
  SUBCASE("fewer tangents than xs") {
    jvp(p.s, {ops::square(p.s, x)}, {x, x}, {x});
    says("there are 1 tangents for 2 xs");
  }
  SUBCASE("an x in a loop that y is outside of") {
    const auto [y, inside] = doubled(p.s, x);
    jvp(p.s, {y}, {inside}, {x});
    says("\"while/inside:0\" is in the loop");
  }
  SUBCASE("a tangent from a loop that x is outside of") {
    const Output inside = doubled(p.s, x).inside;
    jvp(p.s, {ops::square(p.s, x)}, {x}, {inside});
    says("\"while/inside\" from inside the loop");
  }
}
