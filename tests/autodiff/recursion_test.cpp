// Gradients of functions that call themselves.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "graph/function.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::check_gradients;
using tagflow::autodiff::testing::evaluate;
using tagflow::autodiff::testing::numbers;
using tagflow::autodiff::testing::values;

namespace {

using Doubles = std::vector<double>;

const ArgumentSpec kX{"x", DataType::kDouble, {}};
const ArgumentSpec kN{"n", DataType::kInt32, PartialShape::scalar()};
const ResultSpec kY{DataType::kDouble, {}};

// power(x, n) = n > 0 ? x * power(x, n - 1) : 1
void define_power(const Scope& s) {
  define_function(
      s, {.name = "power",
          .args = {kX, kN},
          .results = {kY},
          .body = [](const Scope& in, const Outputs& a) -> Outputs {
            return cond(
                in, ops::greater(in, a[1], 0),
                [&](const Scope& b) -> Outputs {
                  return ops::mul(
                      b, a[0],
                      call(b, "power", {a[0], ops::sub(b, a[1], 1)})[0]);
                },
                [&](const Scope& b) -> Outputs {
                  return ops::ones_like(b, a[0]);
                });
          }});
}

Output power(const Scope& s, const Input& x, const Input& n) {
  return call(s, "power", {x, n})[0];
}

}  // namespace

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

TEST_CASE("two calls in one body each have a record of their own") {
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

TEST_CASE("only what depends on an x by a path has a gradient") {
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

TEST_CASE("a recursion is as deep with its gradients as without") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 1.0);
  const Output y = power(s, x, 9999);
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Output second = dense_gradients(s, {first}, {x})[0];
  CHECK(numbers(s, {y}) == Doubles{1});
  CHECK(numbers(s, {y, first}) == Doubles{1, 9999});
  CHECK(numbers(s, {second}) == Doubles{9999.0 * 9998});
}

TEST_CASE("a recursion without end is an error of the run") {
  Graph graph;
  const Scope s(graph);
  define_function(s, {.name = "f",
                      .args = {kX},
                      .results = {kY},
                      .body = [](const Scope& in, const Outputs& a) -> Outputs {
                        return ops::add(in, a[0],
                                        call(in, "f", {ops::sin(in, a[0])})[0]);
                      }});
  const Output x = ops::constant(s, 1.0);
  const Output y = call(s, "f", {x})[0];
  const Output grad = dense_gradients(s, {y}, {x})[0];
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  auto session = actors::Session::create({.max_call_depth = 100});
  REQUIRE(session.ok());
  REQUIRE((*session)->extend(graph).ok());
  const auto result = (*session)->run({}, {grad.name()});
  CHECK(result.status().code() == Code::kResourceExhausted);
}

TEST_CASE("gradients of recursions are the same to the bit over devices") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, Tensor::of<double>({3}, {0.7, -0.4, 1.1}));
  const Output y = power(s, ops::sin(s, x), 5);
  const Output first = dense_gradients(s, {y}, {x})[0];
  const Outputs all{y, first, dense_gradients(s, {first}, {x})[0]};
  const std::vector<Tensor> expected = evaluate(s, all);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    actors::SessionOptions options;
    options.devices = "cpu:3";
    options.scatter = seed;
    const std::vector<Tensor> cut = evaluate(s, all, {}, options);
    for (size_t i = 0; i < cut.size(); ++i)
      CHECK(identical(cut[i], expected[i]));
  }
}

namespace {

// noisy(count, x, n): three times x *= a random number, which adds 1 to the
// variable, and then noisy(count, x, n - 1).
void define_noisy(const Scope& s) {
  const PartialShape scalar = PartialShape::scalar();
  define_function(
      s,
      {.name = "noisy",
       .args = {{"count", DataType::kResource, scalar},
                {"x", DataType::kDouble, scalar},
                kN},
       .results = {{DataType::kDouble, scalar}},
       .body = [scalar](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::greater(in, a[2], 0),
             [&](const Scope& b) -> Outputs {
               const Output kept = while_loop(
                   b,
                   [](const Scope& c, const Outputs& v) {
                     return ops::less(c, v[0], 3);
                   },
                   [&](const Scope& c, const Outputs& v) -> Outputs {
                     const ops::Variable count{a[0], DataType::kDouble, scalar};
                     const Output added = ops::assign_add(c, count, 1.0);
                     const Output shape =
                         ops::constant(c, Tensor::of<int32_t>({0}, {}));
                     const Output noise = c.op("RandomUniform", {shape},
                                               {{"dtype", DataType::kDouble}});
                     return {ops::add(c.with_control_dependencies({added}),
                                      v[0], 1),
                             ops::mul(c, v[1], ops::add(c, noise, 0.5))};
                   },
                   {0, a[1]})[1];
               return call(b, "noisy", {a[0], kept, ops::sub(b, a[2], 1)})[0];
             },
             [&](const Scope& b) -> Outputs { return ops::identity(b, a[1]); });
       }});
}

struct Noisy {
  Graph graph;
  const Scope s{graph};
  ops::Variable count;
  Output init, x, y;

  explicit Noisy(int n = 4) {
    define_noisy(s);
    count = ops::variable(s.named("count"), DataType::kDouble,
                          PartialShape::scalar());
    init = ops::assign(s.named("init"), count, 0.0);
    x = ops::constant(s.named("x"), 2.0);
    y = call(s.named("y"), "noisy", {count.handle, ops::square(s, x), n})[0];
  }
  // The fetches of a run with a seed, and what has been counted after it.
  std::vector<double> run(const Outputs& fetches, uint64_t& fired) const {
    actors::SessionOptions options;
    options.seed = 7;
    auto session = actors::Session::create(std::move(options));
    REQUIRE(session.ok());
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    const Output counted = ops::read(s.named("counted"), count);
    REQUIRE((*session)->extend(graph).ok());
    REQUIRE((*session)->run({}, {}, {"init"}).ok());
    std::vector<std::string> names;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    actors::RunStats stats;
    auto results = (*session)->run({}, names, {}, {}, &stats);
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    fired = stats.fired;
    auto after = (*session)->run({}, {counted.name()});
    REQUIRE(after.ok());
    results->push_back((*after)[0]);
    std::vector<double> numbers;
    for (const Tensor& tensor : *results)
      numbers.push_back(tensor.item<double>().value());
    return numbers;
  }
};

}  // namespace

TEST_CASE("calls fire as many nodes as before where no gradient is fetched") {
  const auto fired = [](int n, bool has_gradients) {
    Noisy made(n);
    if (has_gradients) dense_gradients(made.s, {made.y}, {made.x});
    uint64_t count = 0;
    made.run({made.y}, count);
    return count;
  };
  CHECK(fired(9, true) - fired(4, true) == fired(9, false) - fired(4, false));
}

TEST_CASE("a gradient changes no bit and no effect of the recursion") {
  uint64_t before = 0, beside = 0, together = 0;
  const Noisy plain;
  const Doubles expected = plain.run({plain.y}, before);
  CHECK(expected[1] == 12);
  Noisy made;
  const Output first = dense_gradients(made.s, {made.y}, {made.x})[0];
  const Output second = dense_gradients(made.s, {first}, {made.x})[0];
  CHECK(made.run({made.y}, beside) == expected);
  const Doubles all = made.run({made.y, first, second}, together);
  CHECK(all[0] == expected[0]);
  CHECK(all[1] == doctest::Approx(expected[0]));
  CHECK(all[2] == doctest::Approx(expected[0] / 2));
  CHECK(all[3] == 12);
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

TEST_CASE("one recursion has several gradients, each by itself") {
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

TEST_CASE("a list goes through a recursion, and its gradient comes back") {
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

TEST_CASE("an array that is handed to a recursion is refused by name") {
  Graph graph;
  const Scope s(graph);
  define_function(
      s,
      {.name = "f",
       .args = {{"array", DataType::kResource, {}},
                {"flow", DataType::kFloat, {}},
                kX,
                kN},
       .results = {{DataType::kFloat, {}}},
       .body = [](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::greater(in, a[3], 0),
             [&](const Scope& b) -> Outputs {
               const Output less = ops::sub(b, a[3], 1);
               const Output flow =
                   b.op("TensorArrayWriteV3", {a[0], less, a[2], a[1]});
               return call(b, "f", {a[0], flow, a[2], less});
             },
             [&](const Scope& b) -> Outputs { return ops::identity(b, a[1]); });
       }});
  const OpResult array =
      s.op("TensorArrayV3", {3}, {{"dtype", DataType::kDouble}});
  const Output x = ops::constant(s, 2.0);
  const Output flow = call(s, "f", {array[0], array[1], x, 3})[0];
  const Output y = s.op("TensorArrayReadV3", {array[0], 1, flow},
                        {{"dtype", DataType::kDouble}});
  dense_gradients(s, {y}, {x});
  CHECK(s.status().code() == Code::kUnimplemented);
  CHECK(s.status().to_string().find("to the recursive function \"f\"") !=
        std::string::npos);
}

TEST_CASE("a recursion whose result may be dead is refused by name") {
  Graph graph;
  const Scope s(graph);
  define_function(s, {.name = "f",
                      .args = {kX},
                      .results = {kY},
                      .body = [](const Scope& in, const Outputs& a) -> Outputs {
                        const OpResult split =
                            in.op("Switch", {a[0], ops::less(in, a[0], 1.0)});
                        return ops::add(in, split[0],
                                        call(in, "f", {split[1]})[0]);
                      }});
  const Output x = ops::constant(s, 2.0);
  const Output y = call(s, "f", {x})[0];
  dense_gradients(s, {y}, {x});
  CHECK(s.status().code() == Code::kUnimplemented);
  CHECK(s.status().to_string().find(
            "function \"f\": its result 0 may be dead") != std::string::npos);
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

TEST_CASE("what a recursion saves is said by the name of its function") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, 2.0);
  std::vector<KeptValue> kept;
  dense_gradients(s, {power(s, x, 3)}, {x}, {.kept = &kept});
  CHECK(std::ranges::any_of(kept, [](const KeptValue& value) {
    return value.function == "power" && value.kept == Kept::kSaved;
  }));
}

TEST_CASE("shapes in a recursion are those of all its calls") {
  Graph graph;
  const Scope s(graph);
  define_power(s);
  const Output x = ops::constant(s, Tensor::of<double>({3}, {1, 2, 3}));
  std::vector<KeptValue> kept;
  dense_gradients(s, {power(s, x, 3)}, {x}, {.kept = &kept});
  for (const KeptValue& value : kept)
    if (value.dtype == DataType::kDouble)
      CHECK(value.shape == PartialShape({3}));
  // Where another call has another shape, only the rank is known.
  const Output y = ops::constant(s, Tensor::of<double>({2}, {1, 2}));
  const Output sum = ops::add(s, ops::reduce_sum(s, power(s, x, 3)),
                              ops::reduce_sum(s, power(s, y, 3)));
  kept.clear();
  const Outputs grads = dense_gradients(s, {sum}, {x, y}, {.kept = &kept});
  for (const KeptValue& value : kept)
    if (value.dtype == DataType::kDouble)
      CHECK(value.shape == PartialShape({-1}));
  const auto made = evaluate(s, grads);
  CHECK(identical(made[0], Tensor::of<double>({3}, {3, 12, 27})));
  CHECK(identical(made[1], Tensor::of<double>({2}, {3, 12})));
}
