// Gradients of functions that call themselves.
#include "tests/autodiff/recursion.h"

#include <doctest/doctest.h>

#include <cmath>

#include "graph/function.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::check_gradients;
using tagflow::autodiff::testing::define_power;
using tagflow::autodiff::testing::Doubles;
using tagflow::autodiff::testing::kN;
using tagflow::autodiff::testing::kX;
using tagflow::autodiff::testing::kY;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::power;
using tagflow::autodiff::testing::values;

TEST_CASE("a power by recursion has the derivatives of the power") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 1.5);
  const Output y = power(s, x, 6);
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Output second = dense_gradients(s, {first}, {x})[0];
  const Output third = dense_gradients(s, {second}, {x})[0];
  const Doubles made = numbers(s, {y, first, second, third});
  CHECK(made[0] == doctest::Approx(std::pow(1.5, 6)));
  CHECK(made[1] == doctest::Approx(6 * std::pow(1.5, 5)));
  CHECK(made[2] == doctest::Approx(30 * std::pow(1.5, 4)));
  CHECK(made[3] == doctest::Approx(120 * std::pow(1.5, 3)));
}

TEST_CASE("a recursion that ends at once has the gradient of its end") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 1.5);
  const Output y = power(s, x, 0);
  CHECK(numbers(s, {y, dense_gradients(s, {y}, {x})[0]}) == Doubles{1, 0});
}

TEST_CASE("a recursion of vectors agrees with differences") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        define_power(s);
        return power(s, ops::mul(s, x[0], x[1]), 4);
      },
      {values({3}, 0.5, 1.5), values({3}, 0.5, 1.5)});
}

TEST_CASE("a recursion with two calls in its body records each of them") {
  // tree(x, n) = n > 0 ? sin(tree(x, n - 1)) * tree(0.9 x, n - 2) + x : x
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        define_function(
            s, {.name = "tree",
                .args = {kX, kN},
                .results = {kY},
                .body = [](const Scope& in, const Outputs& a) -> Outputs {
                  return cond(
                      in, ops::greater(in, a[1], 0),
                      [&](const Scope& b) -> Outputs {
                        const Output left =
                            call(b, "tree", {a[0], ops::sub(b, a[1], 1)})[0];
                        const Output right = call(
                            b, "tree",
                            {ops::mul(b, a[0], 0.9), ops::sub(b, a[1], 2)})[0];
                        return ops::add(
                            b, ops::mul(b, ops::sin(b, left), right), a[0]);
                      },
                      [&](const Scope& b) -> Outputs {
                        return ops::identity(b, a[0]);
                      });
                }});
        return call(s, "tree", {x[0], 5});
      },
      {values({2}, 0.4, 1)});
}

TEST_CASE("functions that call one another are differentiated together") {
  // As Ackermann's function, with a number of trips and a value:
  //   f(m, n, x) = m > 0 ? (n > 0 ? g(m - 1, f(m, n - 1, x)) : g(m - 1, 1,
  //   .9x))
  //                      : (n + 1, sin(x) + x)
  //   g(m, n, x) = f(m, n, x * x)
  const ArgumentSpec m{"m", DataType::kInt32, PartialShape::scalar()};
  const ResultSpec n{DataType::kInt32, PartialShape::scalar()};
  const auto define = [&](const Scope& s) {
    const auto f_body = [](const Scope& in, const Outputs& a) -> Outputs {
      return cond(
          in, ops::greater(in, a[0], 0),
          [&](const Scope& b) -> Outputs {
            const Output less = ops::sub(b, a[0], 1);
            return cond(
                b, ops::greater(b, a[1], 0),
                [&](const Scope& c) -> Outputs {
                  const Outputs inner =
                      call(c, "f", {a[0], ops::sub(c, a[1], 1), a[2]});
                  return call(c, "g", {less, inner[0], inner[1]});
                },
                [&](const Scope& c) -> Outputs {
                  return call(c, "g", {less, 1, ops::mul(c, a[2], 0.9)});
                });
          },
          [&](const Scope& b) -> Outputs {
            return {ops::add(b, a[1], 1), ops::add(b, ops::sin(b, a[2]), a[2])};
          });
    };
    const auto g_body = [](const Scope& in, const Outputs& a) -> Outputs {
      return call(in, "f", {a[0], a[1], ops::mul(in, a[2], a[2])});
    };
    define_functions(
        s,
        {{.name = "f", .args = {m, kN, kX}, .results = {n, kY}, .body = f_body},
         {.name = "g",
          .args = {m, kN, kX},
          .results = {n, kY},
          .body = g_body}});
  };
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        define(s);
        return call(s, "f", {2, 1, x[0]})[1];
      },
      {values({2}, 0.2, 0.5)});
}

TEST_CASE("a recursion has a loop in its body, and a call in a loop") {
  // f(x, n) = n > 0 ? three times: y = sin(y) * f(x, n - 1), from y = x : x
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        define_function(
            s, {.name = "f",
                .args = {kX, kN},
                .results = {kY},
                .body = [](const Scope& in, const Outputs& a) -> Outputs {
                  return cond(
                      in, ops::greater(in, a[1], 0),
                      [&](const Scope& b) -> Outputs {
                        return while_loop(
                            b,
                            [](const Scope& c, const Outputs& v) {
                              return ops::less(c, v[0], 3);
                            },
                            [&](const Scope& c, const Outputs& v) -> Outputs {
                              const Output inner =
                                  call(c, "f", {v[1], ops::sub(c, a[1], 1)})[0];
                              return {ops::add(c, v[0], 1),
                                      ops::mul(c, ops::sin(c, v[1]), inner)};
                            },
                            {0, a[0]})[1];
                      },
                      [&](const Scope& b) -> Outputs {
                        return ops::add(b, ops::cos(b, a[0]), 0.5);
                      });
                }});
        return call(s, "f", {x[0], 2});
      },
      {values({2}, 0.4, 1)});
}

TEST_CASE("a recursion may be called in a loop and on a branch of it") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        define_power(s);
        return while_loop(
            s,
            [](const Scope& in, const Outputs& v) {
              return ops::less(in, v[0], 4);
            },
            [&](const Scope& in, const Outputs& v) -> Outputs {
              const Outputs next = cond(
                  in, ops::equal(in, ops::floor_mod(in, v[0], 2), 0),
                  [&](const Scope& b) -> Outputs {
                    const Output y = power(b, ops::mul(b, v[1], x[1]), v[0]);
                    return ops::reshape(b, y, {2});
                  },
                  [&](const Scope& b) -> Outputs {
                    return ops::add(b, v[1], x[0]);
                  });
              return {ops::add(in, v[0], 1), next[0]};
            },
            {0, x[0]})[1];
      },
      {values({2}, 0.4, 1), values({2}, 0.4, 1)});
}

TEST_CASE("a recursion has gradients only by paths from an x") {
  // f(x, z, n) = n > 0 ? f(2x, z, n - 1) : (x, z, a constant)
  Graph graph;
  const Scope s(graph);
  define_function(
      s, {.name = "f",
          .args = {kX, {"z", DataType::kDouble, {}}, kN},
          .results = {kY, kY, kY},
          .body = [](const Scope& in, const Outputs& a) -> Outputs {
            return cond(
                in, ops::greater(in, a[2], 0),
                [&](const Scope& b) -> Outputs {
                  return call(
                      b, "f",
                      {ops::mul(b, a[0], 2), a[1], ops::sub(b, a[2], 1)});
                },
                [&](const Scope& b) -> Outputs {
                  return {ops::identity(b, a[0]), ops::identity(b, a[1]),
                          ops::constant(b, 7.0)};
                });
          }});
  const Output x = ops::constant(s, 3.0), z = ops::constant(s, 4.0);
  const Outputs y = call(s, "f", {x, z, 3});
  const Outputs by_first = dense_gradients(s, {y[0]}, {x, z});
  const Outputs by_second = dense_gradients(s, {y[1]}, {x, z});
  const Outputs by_third = dense_gradients(s, {y[2]}, {x, z});
  CHECK(by_first[0].valid());
  CHECK(!by_first[1].valid());
  CHECK(!by_second[0].valid());
  CHECK(by_second[1].valid());
  CHECK(!by_third[0].valid());
  CHECK(numbers(s, {by_first[0], by_second[1]}) == Doubles{8, 1});
}

TEST_CASE("a variable that a recursion is given has gradients by its handle") {
  // f(w, x, n): x * w, then w += 1, n times.
  Graph graph;
  const Scope s(graph);
  const PartialShape scalar = PartialShape::scalar();
  define_function(
      s,
      {.name = "f",
       .args = {{"w", DataType::kResource, scalar}, kX, kN},
       .results = {kY},
       .body = [&](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::greater(in, a[2], 0),
             [&](const Scope& b) -> Outputs {
               const ops::Variable w{a[0], DataType::kDouble, scalar};
               const Output next = ops::mul(b, a[1], ops::read(b, w));
               const Scope after = b.with_control_dependencies({next});
               const Output added = ops::assign_add(after, w, 1.0);
               return call(b.with_control_dependencies({added}), "f",
                           {a[0], next, ops::sub(b, a[2], 1)})[0];
             },
             [&](const Scope& b) -> Outputs { return ops::identity(b, a[1]); });
       }});
  const ops::Variable w =
      ops::variable(s.named("w"), DataType::kDouble, scalar);
  const Output init = ops::assign(s, w, 2.0);
  const Output x = ops::constant(s, 1.0);
  const Output y = call(s, "f", {w.handle, x, 3})[0];
  const Outputs grads = dense_gradients(s, {y}, {w.handle, x});
  // 2 * 3 * 4, and each of the three reads by itself.
  CHECK(numbers(s, {y, grads[0], grads[1]}, {}, {}, init) ==
        Doubles{24, 12 + 8 + 6, 24});
}

TEST_CASE("a body of three branches saves what the taken one needs") {
  // f(x, n): n = 0: sin(x), 1: x * f(x, 0), 2: f(x, 1) * f(sin(x), 1)
  const auto body = [](const Scope& in, const Outputs& a) -> Outputs {
    const auto f = [&](const Scope& b, const Output& x) {
      return call(b, "f", {x, ops::sub(b, a[1], 1)})[0];
    };
    return switch_case(
        in, a[1],
        {[&](const Scope& b) -> Outputs { return ops::sin(b, a[0]); },
         [&](const Scope& b) -> Outputs {
           return ops::mul(b, a[0], f(b, a[0]));
         },
         [&](const Scope& b) -> Outputs {
           return ops::mul(b, f(b, a[0]), f(b, ops::sin(b, a[0])));
         }});
  };
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        define_function(
            s, {.name = "f", .args = {kX, kN}, .results = {kY}, .body = body});
        return call(s, "f", {x[0], 2});
      },
      {values({2}, 0.4, 1)});
}

TEST_CASE("a recursion on a branch that is not taken has a gradient of zero") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 2.0);
  const Output taken = ops::placeholder(s.named("taken"), DataType::kBool,
                                        PartialShape::scalar());
  const Output y = cond(
      s, taken, [&](const Scope& b) -> Outputs { return power(b, x, 3); },
      [&](const Scope& b) -> Outputs { return ops::identity(b, x); })[0];
  const Output grad = dense_gradients(s, {y}, {x})[0];
  const Output second = dense_gradients(s, {grad}, {x})[0];
  CHECK(numbers(s, {y, grad, second}, {{"taken", Tensor::scalar(true)}}) ==
        Doubles{8, 12, 12});
  CHECK(numbers(s, {y, grad, second}, {{"taken", Tensor::scalar(false)}}) ==
        Doubles{2, 1, 0});
}

TEST_CASE("a recursion may have several gradients, each by itself") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 2.0);
  const Output y = power(s, x, 3), z = power(s, y, 2);
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Output again = dense_gradients(s, {y}, {x})[0];
  const Output both = dense_gradients(s, {ops::mul(s, z, y)}, {x})[0];
  const Output by_y = dense_gradients(s, {z}, {y})[0];
  CHECK(numbers(s, {y, z, first, again, both, by_y}) ==
        Doubles{8, 64, 12, 12, 9 * 256, 16});
}

TEST_CASE("a recursion that passes a list on passes its gradient back") {
  // push(list, x, n): list + [x, x^2, ... x^n], of which the elements are
  // added.
  Graph graph;
  const Scope s(graph);
  const PartialShape scalar = PartialShape::scalar();
  const ArgumentSpec list{"list", DataType::kVariant, scalar};
  define_function(
      s,
      {.name = "push",
       .args = {list, kX, {"power", DataType::kDouble, {}}, kN},
       .results = {{DataType::kVariant, scalar}},
       .body = [](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::greater(in, a[3], 0),
             [&](const Scope& b) -> Outputs {
               const Output next = ops::mul(b, a[2], a[1]);
               const Output longer =
                   b.op("TensorListPushBack", {a[0], next},
                        {{"element_dtype", DataType::kDouble}});
               return call(b, "push",
                           {longer, a[1], next, ops::sub(b, a[3], 1)});
             },
             [&](const Scope& b) -> Outputs { return ops::identity(b, a[0]); });
       }});
  const Output x = ops::constant(s, 2.0);
  const Output shape = ops::constant(s, Tensor::of<int32_t>({0}, {}));
  const Output empty = s.op(
      "TensorListReserve", {shape, ops::constant(s, 0)},
      {{"element_dtype", DataType::kDouble}, {"shape_type", DataType::kInt32}});
  const Output full = call(s, "push", {empty, x, ops::constant(s, 1.0), 4})[0];
  const Output y = ops::reduce_sum(
      s, s.op("TensorListStack", {full, shape},
              {{"element_dtype", DataType::kDouble}, {"num_elements", -1}}));
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Output second = dense_gradients(s, {first}, {x})[0];
  CHECK(numbers(s, {y, first, second}) ==
        Doubles{2 + 4 + 8 + 16, 1 + 4 + 12 + 32, 2 + 12 + 48});
}

TEST_CASE("SymbolicGradient is that of a recursive function, too") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const DataType type = DataType::kDouble;
  const Output x = ops::constant(s, 2.0), n = ops::constant(s, 5);
  const OpResult grads =
      s.op("SymbolicGradient", {x, n, ops::constant(s, 3.0)},
           {{"Tin", std::vector<DataType>{type, DataType::kInt32, type}},
            {"Tout", std::vector<DataType>{type, DataType::kInt32}},
            {"f", FunctionRef{"power"}}});
  CHECK(numbers(s, {grads[0]}) == Doubles{3 * 5 * 16});
}
